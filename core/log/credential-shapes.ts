import type { Span } from './needle-set.js'

/**
 * What looks like a credential is masked whether or not it was declared: our own secrets, bearer
 * tokens, and the user part of a URL that holds a password or a token. No pattern looks twice at a
 * character: the texts come from outside.
 */
const shapes =
  /busbar_(?:pat|ses|ref|hook)_([\w-]+)|busbar_dev_([\w.-]+)|bearer\s+([\w.~+/-]+=*)|:\/\/([^\s/?#"'<>@:]*:[^\s/?#"'<>]*|[^\s/?#"'<>@:]{16,})(?=@)/dgi
const anyShape = new RegExp(shapes.source, 'i')

export const mayHoldCredential = (text: string): boolean => anyShape.test(text)

/** The secret parts only: the text keeps `Bearer` and `busbar_pat_`, so that a reader sees what it was. */
export function credentialSpans(text: string): Span[] {
  return [...text.matchAll(shapes)].flatMap(({ indices }) =>
    (indices ?? [])
      .slice(1)
      .filter(range => range !== undefined)
      .map(([start, end]) => ({ start, end }))
  )
}
