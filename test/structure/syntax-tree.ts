import { type Program, parse } from 'acorn'
import { transformSync } from 'esbuild'

/** The syntax tree of a module that has no types. Throws at one that has. */
export const parseJavaScript = (code: string): Program =>
  parse(code, { ecmaVersion: 'latest', sourceType: 'module' })

/** A module without its types, and the syntax tree of that. */
export function parseTypeScript(
  code: string,
  loader: 'ts' | 'js' = 'ts'
): { readonly javascript: string; readonly program: Program } {
  const javascript = transformSync(code, {
    loader,
    format: 'esm',
    target: 'esnext',
    // Or imports of what is not used are left out.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } }
  }).code
  return { javascript, program: parseJavaScript(javascript) }
}
