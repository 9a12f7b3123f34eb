import { isIP } from 'node:net'

const dnsName = /^(\*\.)?[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62})){0,126}$/

/**
 * The names and addresses of `X509Certificate.subjectAltName`, in lower case, each once. What is no name of a host or
 * no address is left out, and so is what node quotes, as no host is called so.
 */
export function subjectNames(subjectAltName: string | undefined): readonly string[] {
  const names = new Set<string>()
  for (const entry of (subjectAltName ?? '').split(', ')) {
    if (entry.startsWith('DNS:')) {
      const name = entry.slice('DNS:'.length).toLowerCase()
      if (name.length <= 255 && dnsName.test(name)) names.add(name)
    } else if (entry.startsWith('IP Address:')) {
      const address = entry.slice('IP Address:'.length)
      if (isIP(address) !== 0) names.add(address.toLowerCase())
    }
  }
  return [...names]
}

/** The lines of a distinguished name, as node gives them, in one. */
export const inOneLine = (distinguishedName: string): string => {
  const line = distinguishedName
    .slice(0, 2000)
    .split('\n')
    .map(part => part.replace(/[^\P{C}]/gu, ' ').trim())
    .filter(part => part !== '')
    .join(', ')
  return line.length > 500 ? `${line.slice(0, 499)}…` : line
}
