/** Ports of the machine that containers may reach, both ends included; `all`: whatever the machine offers. */
export type HostPorts = 'all' | ReadonlyArray<{ readonly first: number; readonly last: number }>

/** HOST_PORTS_FOR_CONTAINERS: `80,443,20000-20019`, `all` or `none`; undefined when it is written otherwise. */
export function parseHostPorts(text: string): HostPorts | undefined {
  const value = text.trim().toLowerCase()
  if (value === 'all') return 'all'
  if (value === 'none') return []
  const ranges = value.split(',').map(parsePortRange)
  return ranges.every(range => range !== undefined) ? ranges : undefined
}

function parsePortRange(text: string): { readonly first: number; readonly last: number } | undefined {
  const [, from, to] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text.trim()) ?? []
  if (from === undefined) return undefined
  const [first, last] = [Number(from), Number(to ?? from)]
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : undefined
}
