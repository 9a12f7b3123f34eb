import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import type { EngineInfo } from 'busbar/api/containers'
import type { Log } from 'busbar/sdk'
import type { EngineClient } from './engine-client.js'
import { withHostTools } from './host/host-tools.js'
import { type AddressRange, parseRange, rangeOf } from './subnet.js'

/** A range that a machine already sends somewhere. `name` says how in messages: `the route 10.0.0.0/8 (table 52)`. */
export interface RoutedRange extends AddressRange {
  readonly name: string
}

/** Only Linux has it, and only there engines leave bridges behind when they are killed. */
const routesFile = '/proc/net/fib_trie'

/**
 * The IPv4 ranges that this machine already reaches without the engine's doing: the engine does not compare
 * a subnet that it is given with them. Two bridges with one range would leave a container out of reach.
 */
export async function hostRanges(): Promise<readonly RoutedRange[]> {
  const addresses = Object.entries(networkInterfaces())
    .flatMap(([name, found]) => (found ?? []).map(({ cidr, family }) => ({ name, cidr, family })))
    .flatMap(({ name, cidr, family }) => {
      const range = family === 'IPv4' ? parseRange(cidr ?? '') : undefined
      return range === undefined ? [] : [{ ...range, name: `the interface ${name} (${cidr ?? ''})` }]
    })
  return [...addresses, ...parseRoutes(await readFile(routesFile, 'latin1').catch(() => ''))]
}

/** The same of the engine's machine, where that is not the platform's, or the platform sees only its container's. */
async function engineRanges(engine: EngineClient, instanceId: string): Promise<readonly RoutedRange[]> {
  const { output } = await withHostTools(
    engine,
    instanceId,
    async tools => await tools.run(['cat', routesFile])
  )
  return parseRoutes(output)
}

interface Around {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly log: Log
  readonly place: () => Promise<EngineInfo['place']>
}

/** Those that new networks have to keep clear of; none where the engine's machine does not tell. */
export async function routesAround({
  engine,
  instanceId,
  log,
  place
}: Around): Promise<readonly RoutedRange[]> {
  if ((await place()) === 'here') return await hostRanges()
  return await engineRanges(engine, instanceId).catch((error: unknown) => {
    log.warn(
      { err: error },
      "the routes of the engine's machine cannot be read: the ranges of new networks are chosen without them"
    )
    return []
  })
}

/** A route to so much is a default route, or one half of a VPN's: whatever is more exact comes before it. */
const widestPrefix = 2
const kindsThatTake: ReadonlySet<string> = new Set([
  'UNICAST',
  'LOCAL',
  'BLACKHOLE',
  'UNREACHABLE',
  'PROHIBIT',
  'THROW',
  'NAT'
])

/**
 * The routed ranges of `/proc/net/fib_trie`. Unlike the list of interfaces it also holds those of a bridge that
 * nothing is plugged into, and unlike `/proc/net/route` those of every table: what a VPN puts into one of its own
 * comes before the routes of bridges, however wide it is.
 */
export function parseRoutes(trie: string): readonly RoutedRange[] {
  const found = new Map<string, RoutedRange>()
  let table = ''
  let address = ''
  for (const line of trie.split('\n')) {
    const text = line.trim()
    if (/^(?:Main|Local|Id \d{1,10}):$/.test(text))
      table = text.slice(0, -1).toLowerCase().replace('id ', 'table ')
    else if (text.startsWith('|-- ')) address = text.slice(4)
    else if (text.startsWith('/')) {
      const [prefixText = '', , kind = ''] = text.slice(1).split(' ')
      const prefix = /^\d{1,2}$/.test(prefixText) ? Number(prefixText) : 0
      const range = prefix < widestPrefix || !kindsThatTake.has(kind) ? undefined : rangeOf(address, prefix)
      const key = `${address}/${prefix}`
      if (range !== undefined && !found.has(key))
        found.set(key, { ...range, name: `the route ${key} (${table})` })
    }
  }
  return [...found.values()]
}
