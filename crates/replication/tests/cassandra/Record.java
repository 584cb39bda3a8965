// Records tokens and placements as Apache Cassandra computes them; README.md says how to run it.
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.locator.*;
import org.apache.cassandra.utils.FBUtilities;

public class Record {
    /** Node i is 10.0.(i / 256).(i % 256); data centres and racks are given by its number. */
    static final class Places extends AbstractEndpointSnitch {
        final int[][] places;
        Places(int[][] places) { this.places = places; }
        static int number(InetAddressAndPort a) {
            byte[] b = a.addressBytes;
            return (b[2] & 255) * 256 + (b[3] & 255);
        }
        public String getRack(InetAddressAndPort a) { return "rack" + places[number(a)][1]; }
        public String getDatacenter(InetAddressAndPort a) { return "dc" + places[number(a)][0]; }
        public int compareEndpoints(InetAddressAndPort t, Replica a, Replica b) { return 0; }
    }

    static InetAddressAndPort address(int i) throws Exception {
        return InetAddressAndPort.getByName("10.0." + i / 256 + "." + i % 256);
    }

    static String hex(byte[] bytes) {
        StringBuilder s = new StringBuilder();
        for (byte b : bytes) s.append(String.format("%02x", b));
        return s.toString();
    }

    static final Random random = new Random(20221101);
    static final Murmur3Partitioner partitioner = Murmur3Partitioner.instance;

    static String tokens() {
        List<byte[]> keys = new ArrayList<>();
        keys.add(new byte[0]);
        for (String text : new String[] {"a", "hello", "user1000", "Marie Curie", "a key longer than one block of 16",
                                         "exactly 16 bytes", "grüße", "ノーベル賞", "\u0000"})
            keys.add(text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
        // Every length up to three blocks, all bytes above 127, so that each sign is extended.
        for (int n = 1; n <= 48; n++) {
            byte[] key = new byte[n];
            Arrays.fill(key, (byte) (0x80 + n));
            keys.add(key);
        }
        for (long n : new long[] {0, 1, -1, 255, 256, Long.MIN_VALUE, Long.MAX_VALUE, 123456789L})
            keys.add(ByteBuffer.allocate(8).putLong(n).array());
        for (int i = 0; i < 200; i++) {
            byte[] key = new byte[1 + random.nextInt(70)];
            random.nextBytes(key);
            keys.add(key);
        }
        StringJoiner out = new StringJoiner(",\n    ", "  \"tokens\": [\n    ", "\n  ]");
        for (byte[] key : keys) {
            long token = (Long) partitioner.getToken(ByteBuffer.wrap(key)).getTokenValue();
            out.add("[\"" + hex(key) + "\", " + token + "]");
        }
        return out.toString();
    }

    static String ring(int[][] places, int perNode, boolean even, int[][] settings) throws Exception {
        Places snitch = new Places(places);
        DatabaseDescriptor.setEndpointSnitch(snitch);
        TokenMetadata metadata = new TokenMetadata(snitch);
        StringJoiner nodes = new StringJoiner(",\n        ", "[\n        ", "\n      ]");
        for (int i = 0; i < places.length; i++) {
            List<Token> tokens = new ArrayList<>();
            for (int t = 0; t < perNode; t++) {
                long token = even
                    ? new java.math.BigInteger("2").pow(64).divide(java.math.BigInteger.valueOf(places.length))
                        .multiply(java.math.BigInteger.valueOf(i)).subtract(new java.math.BigInteger("2").pow(63)).longValue()
                    : random.nextLong();
                tokens.add(new Murmur3Partitioner.LongToken(token));
            }
            metadata.updateHostId(UUID.randomUUID(), address(i));
            metadata.updateNormalTokens(tokens, address(i));
            StringJoiner list = new StringJoiner(", ");
            for (Token token : tokens) list.add(token.getTokenValue().toString());
            nodes.add("{\"dc\": " + places[i][0] + ", \"rack\": " + places[i][1] + ", \"tokens\": [" + list + "]}");
        }
        metadata.updateTopology();
        StringJoiner cases = new StringJoiner(",\n        ", "[\n        ", "\n      ]");
        for (int[] factors : settings) {
            boolean simple = factors[0] < 0;
            Map<String, String> options = new HashMap<>();
            if (simple) options.put("replication_factor", "" + -factors[0]);
            else for (int dc = 0; dc < factors.length; dc++)
                if (factors[dc] > 0) options.put("dc" + dc, "" + factors[dc]);
            AbstractReplicationStrategy strategy = simple
                ? new SimpleStrategy("ks", metadata, snitch, options)
                : new NetworkTopologyStrategy("ks", metadata, snitch, options);
            List<Token> wanted = new ArrayList<>();
            List<Token> sorted = metadata.sortedTokens();
            Token some = sorted.get(random.nextInt(sorted.size()));
            wanted.add(some);
            wanted.add(new Murmur3Partitioner.LongToken((Long) some.getTokenValue() + 1));
            wanted.add(new Murmur3Partitioner.LongToken(Long.MAX_VALUE));
            for (int i = 0; i < 12; i++) wanted.add(new Murmur3Partitioner.LongToken(random.nextLong()));
            for (Token token : wanted) {
                StringJoiner replicas = new StringJoiner(", ", "[", "]");
                for (Replica replica : strategy.calculateNaturalReplicas(token, metadata))
                    replicas.add("" + Places.number(replica.endpoint()));
                String how = simple ? "{\"simple\": " + -factors[0] + "}" : "{\"topology\": " + Arrays.toString(factors) + "}";
                cases.add("[" + how + ", " + token.getTokenValue() + ", " + replicas + "]");
            }
        }
        return "    {\n      \"nodes\": " + nodes + ",\n      \"replicas\": " + cases + "\n    }";
    }

    static int[][] places(int nodes, int dcs, int racks) {
        int[][] places = new int[nodes][];
        for (int i = 0; i < nodes; i++) places[i] = new int[] {random.nextInt(dcs), random.nextInt(racks)};
        for (int dc = 0; dc < dcs; dc++) places[dc][0] = dc;
        return places;
    }

    public static void main(String[] args) throws Exception {
        DatabaseDescriptor.clientInitialization(false);
        DatabaseDescriptor.setPartitionerUnsafe(partitioner);
        StringJoiner rings = new StringJoiner(",\n", "  \"rings\": [\n", "\n  ]");
        for (int n = 3; n <= 5; n++)
            rings.add(ring(places(n, 1, 1), 1, true, new int[][] {{-1}, {-2}, {-3}}));
        rings.add(ring(places(6, 1, 1), 16, false, new int[][] {{-1}, {-3}, {-6}, {3}}));
        rings.add(ring(places(12, 2, 3), 8, false, new int[][] {{-3}, {3, 2}, {2, 0}, {1, 3}}));
        rings.add(ring(places(15, 3, 2), 4, false, new int[][] {{3, 3, 3}, {1, 2, 0}, {2, 2, 2}}));
        rings.add(ring(places(9, 1, 4), 1, false, new int[][] {{2}, {3}, {4}, {5}, {7}}));
        rings.add(ring(places(40, 2, 5), 16, false, new int[][] {{3, 3}, {5, 5}}));
        java.nio.file.Files.writeString(java.nio.file.Path.of(args[0]), "{\n  \"cassandra\": \"" + FBUtilities.getReleaseVersionString() + "\",\n" + tokens() + ",\n" + rings + "\n}\n");
        System.exit(0);
    }
}
