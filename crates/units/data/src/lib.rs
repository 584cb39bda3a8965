//! The attribute [`data`] of types that are parts of plans.

use proc_macro::{TokenStream, TokenTree};

/// Derives serde's traits for a type whose values are stored as JSON.
///
/// With the feature `schema` it also derives the type's JSON schema, which contains the type's path
/// as `path`. The crate of the type must depend on `serde` and `sojourn-units`.
#[proc_macro_attribute]
pub fn data(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut derived = "#[derive(::serde::Serialize, ::serde::Deserialize)]".to_owned();
    if cfg!(feature = "schema") {
        let is_keyword = |word: &TokenTree| matches!(word.to_string().as_str(), "struct" | "enum");
        let name = item.clone().into_iter().skip_while(|word| !is_keyword(word)).nth(1);
        let name = name.expect("the attribute `data` belongs to a struct or an enum");
        let schema = format!(
            "#[derive(::sojourn_units::schemars::JsonSchema)]
            #[schemars(
                crate = \"::sojourn_units::schemars\",
                extend(\"path\" = concat!(module_path!(), \"::{name}\"))
            )]"
        );
        derived.push_str(&schema);
    }
    let mut tokens: TokenStream = derived.parse().expect("the attributes are valid");
    tokens.extend(item);
    tokens
}
