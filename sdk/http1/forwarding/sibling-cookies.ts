/**
 * Where every application has a host of its own below one domain, its cookies are its own as long as none is set for
 * the domain itself. This keeps answers from it; the scripts of a page are the browser's to keep from it.
 */

/**
 * True for a `Set-Cookie` that names another `Domain` than `host`, which is the application's own, in lower case. Of
 * several, browsers take the last; here none may be another's, so that it does not matter which one they read.
 */
export function setsCookieOfOthers(header: string, host: string): boolean {
  for (const attribute of header.split(';').slice(1)) {
    const separator = attribute.indexOf('=')
    if (separator < 0 || attribute.slice(0, separator).trim().toLowerCase() !== 'domain') continue
    const domain = attribute
      .slice(separator + 1)
      .trim()
      .toLowerCase()
      .replace(/^\./, '')
    // Without a value it is as good as left out.
    if (domain !== '' && domain !== host) return true
  }
  return false
}
