import { isIP } from 'node:net'

export interface BindAddress {
  readonly host: string
  readonly port: number
}

/** `127.0.0.1:9100`, `localhost:9100`, `[::1]:9100`; `:9100` is every address. Undefined for what is none. */
export function readBind(text: string): BindAddress | undefined {
  const at = text.lastIndexOf(':')
  const [name, digits] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)]
  if (at < 0 || !/^\d{1,5}$/.test(digits)) return undefined
  const port = Number(digits)
  if (port < 1 || port > 65_535) return undefined
  if (name === '') return { host: '::', port }
  if (name.startsWith('[') && name.endsWith(']')) {
    const host = name.slice(1, -1)
    return isIP(host) === 6 ? { host, port } : undefined
  }
  return /^[a-z0-9.-]{1,253}$/i.test(name) ? { host: name, port } : undefined
}
