import js from "@eslint/js";
import globals from "globals";

const rules = {
  ...js.configs.recommended.rules,
  curly: ["error", "multi-line"],
  "default-case-last": "error",
  eqeqeq: "error",
  "no-implicit-globals": "error",
  "no-undef": "off", // the type checker knows the names
  "no-shadow": ["error", { hoist: "all" }],
  "no-unused-expressions": "error",
  "no-var": "error",
  "object-shorthand": "error",
  "prefer-const": "error",
};

export default [
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  { files: ["**/*.mjs", ".ci/js/*.js"], languageOptions: { sourceType: "module" }, rules },
  { files: ["**/*.js"], ignores: [".ci/js/*.js"], languageOptions: { sourceType: "commonjs", globals: globals.node }, rules },
];
