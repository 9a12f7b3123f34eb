/** What is used of it: the types that others publish lack `preferred`. */
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { readonly headers: Readonly<Record<string, string>> })
    /** The available ones that the client takes, the best first; of those that it likes as well, the preferred one. */
    encodings(available: readonly string[], options: { readonly preferred: readonly string[] }): string[]
  }
}
