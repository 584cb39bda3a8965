//! QUIC with the library quinn, encrypted: `quinn recv|send ADDRESS cert=FILE name=value ...`.

use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sojourn_bench_recv::{Reader, Words, Writer, report};
use std::sync::Arc;

fn transport(words: &Words) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if let Ok(window) = u32::try_from(words.number("window", 0))
        && window > 0
    {
        config.stream_receive_window(VarInt::from_u32(window));
        config.receive_window(VarInt::from_u32(window));
        config.send_window(u64::from(window));
    }
    // Path MTU discovery is off, so that datagrams are as large as those of this project.
    config.mtu_discovery_config(None);
    config.initial_mtu(1452);
    Arc::new(config)
}

#[tokio::main]
async fn main() {
    let (role, address, words) = Words::read();
    let address = address.parse().expect("an address");
    let path = words.text("cert", "bench-udp.der");
    if role == "recv" {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("cert");
        let der = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        std::fs::write(path, &der).expect("cert");
        let mut config =
            ServerConfig::with_single_cert(vec![der], key.into()).expect("config");
        config.transport_config(transport(&words));
        let endpoint = Endpoint::server(config, address).expect("server");
        println!("ready");
        let connection = endpoint.accept().await.expect("client").await.expect("connection");
        let mut stream = connection.accept_uni().await.expect("stream");
        let mut reader = Reader::new(&words);
        loop {
            if let Some(rest) = reader.rest() {
                tokio::time::sleep(rest).await;
            }
            match stream.read_chunk(1 << 20, true).await.expect("read") {
                Some(chunk) => reader.note(chunk.bytes.len() as u64),
                None => break,
            }
        }
        report(reader.bytes, reader.seconds(), "");
        connection.closed().await;
    } else {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(std::fs::read(path).expect("cert"))).expect("root");
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("config");
        config.transport_config(transport(&words));
        let here = if words.text("here", "") == "" { "0.0.0.0:0" } else { words.text("here", "") };
        let mut endpoint = Endpoint::client(here.parse().expect("here")).expect("client");
        endpoint.set_default_client_config(config);
        let connection =
            endpoint.connect(address, "localhost").expect("connect").await.expect("connection");
        let mut stream = connection.open_uni().await.expect("stream");
        let mut writer = Writer::new(&words);
        let begun = std::time::Instant::now();
        let data = vec![7; 65_536];
        while tokio::task::block_in_place(|| writer.next(data.len() as u64)) {
            stream.write_all(&data).await.expect("write");
        }
        stream.finish().expect("finish");
        let _ = stream.stopped().await;
        let path = connection.stats().path;
        let more = format!(", \"sent\": {}, \"lost\": {}", path.sent_packets, path.lost_packets);
        report(writer.bytes, begun.elapsed().as_secs_f64(), &more);
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
    }
}
