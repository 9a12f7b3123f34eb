const example = `createClient({ url: 'https://busbar.example.com' })`

/** The address of a platform without the slash at its end. A `TypeError` says what is wrong with one that is none. */
export function platformUrl(url: unknown): string {
  if (typeof url !== 'string' || url === '')
    throw new TypeError(`url is missing: give the address of the platform, as in ${example}`)
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new TypeError(
      `url "${url}" is not an address that begins with http:// or https://, as in ${example}`
    )
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}
