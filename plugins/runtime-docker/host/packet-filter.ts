import type { HostTools, Outcome } from './host-tools.js'

export type Family = 'ipv4' | 'ipv6'
export const families = ['ipv4', 'ipv6'] as const

/** What `iptables-save` says of the two tables that have rules of ours. */
export interface SavedTables {
  readonly filter: string
  /** Empty where the kernel has no such table. */
  readonly raw: string
}

const programs: Readonly<Record<Family, { readonly save: string; readonly restore: string }>> = {
  ipv4: { save: 'iptables-save', restore: 'iptables-restore' },
  ipv6: { save: 'ip6tables-save', restore: 'ip6tables-restore' }
}
const lockSeconds = 10

/** The packet filter of the engine's machine, for one kind of address. */
export class PacketFilter {
  constructor(
    private readonly tools: HostTools,
    readonly family: Family
  ) {}

  /** Undefined where the machine does not know this kind of address. */
  async save(): Promise<SavedTables | undefined> {
    const { save } = programs[this.family]
    const [filter, raw] = await Promise.all([
      this.tools.run([save, '-t', 'filter']),
      this.tools.run([save, '-t', 'raw'])
    ])
    if (filter.code !== 0) {
      if (this.family === 'ipv6' && !(await this.#hasIpv6())) return undefined
      throw new Error(failureOf(save, filter))
    }
    return { filter: filter.output, raw: raw.code === 0 ? raw.output : '' }
  }

  /** Each table in one step; what of it the text does not name stays. */
  async restore(rules: string): Promise<void> {
    const { restore } = programs[this.family]
    const restored = await this.tools.run([restore, '--noflush', '-w', String(lockSeconds)], rules)
    if (restored.code !== 0) throw new Error(failureOf(restore, restored))
  }

  async #hasIpv6(): Promise<boolean> {
    return (await this.tools.run(['cat', '/proc/net/if_inet6'])).code === 0
  }
}

const failureOf = (program: string, { code, output, errors }: Outcome): string =>
  code === 126 || code === 127
    ? `the engine's machine has no ${program}`
    : `${program} failed (${code}): ${(errors.trim() || output.trim()).slice(0, 500)}`
