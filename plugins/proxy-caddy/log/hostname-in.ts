/** The name in a `Host` header: in lower case, without a port, brackets and the dot of a whole name. */
export function hostnameIn(host: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(host)?.[1]
  const name = bracketed ?? host.replace(/:\d{0,5}$/, '')
  return name.toLowerCase().replace(/\.$/, '')
}
