/**
 * A text in which Caddy replaces nothing. It would put in the value of `{env.PATH}`, whoever wrote that; a backslash in front keeps
 * a brace, but stays itself where there is no opening brace at all.
 */
export const literal = (text: string): string => (text.includes('{') ? text.replace(/[{}]/g, '\\$&') : text)

/** A regular expression of Caddy: RE2, which takes time in proportion to its input whatever it is. */
export const re2 = (pattern: string): { readonly pattern: string } => ({ pattern })

/** A text in such an expression. */
export const quoted = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
