const example = `createClient({ url: 'https://busbar.example.com' })`

/** The page that a browser shows, where this runs in one. */
const page = (): string | undefined =>
  (globalThis as { location?: { readonly origin?: string } }).location?.origin

/**
 * The address of a platform without the slash at its end; of an empty one in a browser that of its page. A `TypeError` says what is
 * wrong with one that is none.
 */
export function platformUrl(given: unknown): string {
  const url = given === '' ? page() : given
  if (typeof url !== 'string' || url === '')
    throw new TypeError(`url is missing: give the address of the platform, as in ${example}`)
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    // Not repeated: it may hold a password.
    throw new TypeError(`url must be an address that begins with http:// or https://, as in ${example}`)
  // What is behind it would swallow the paths, and `fetch` takes no names. Neither is shown, as it may be a secret.
  const { username, password, search, hash } = new URL(url)
  if (username !== '' || password !== '')
    throw new TypeError(`url has a name or a password in it: give a token, or use signIn, as in ${example}`)
  if (search !== '' || hash !== '' || /[?#]/.test(url))
    throw new TypeError(
      `url has a query or a fragment, which belongs to no platform: leave it out, as in ${example}`
    )
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}
