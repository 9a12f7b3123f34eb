import type { IndexEntry } from './manifest.js'
import { RegistryFailure } from './registry-failure.js'

/** What is taken for the same. */
const otherNames: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  'x86-64': 'amd64',
  aarch64: 'arm64',
  i386: '386'
}
/** What is meant without a variant. */
const usualVariants: Readonly<Record<string, string>> = { amd64: 'v1', arm64: 'v8', arm: 'v7' }
const armVariants = ['v8', 'v7', 'v6', 'v5']

/**
 * The entry for a machine, `linux/amd64` or `linux/arm/v6`: the nearest of what it runs. One that does not tell its
 * platform is taken where none does that fits. Attestations (`unknown/unknown`) are for no machine.
 */
export function pickEntry(entries: readonly IndexEntry[], platform: string): IndexEntry {
  for (const fitting of platformsFor(platform)) {
    const entry = entries.find(one => one.platform !== undefined && normal(one.platform) === fitting)
    if (entry !== undefined) return entry
  }
  const untold = entries.find(entry => entry.platform === undefined)
  if (untold !== undefined) return untold
  const known = [...new Set(entries.flatMap(entry => entry.platform ?? []))].filter(
    one => !one.startsWith('unknown/')
  )
  const among = known.length === 0 ? 'none' : known.slice(0, 10).join(', ')
  throw new RegistryFailure('platform', `no matching manifest for ${platform} (there are: ${among})`)
}

/** What a machine runs, the best first, with every variant written out. */
function platformsFor(platform: string): readonly string[] {
  const [os = '', processor = '', variant] = normal(platform).split('/')
  const own = [os, processor, variant].filter(word => word !== undefined).join('/')
  const arm = (from: string): readonly string[] =>
    armVariants.includes(from)
      ? armVariants.slice(armVariants.indexOf(from)).map(older => `${os}/arm/${older}`)
      : []
  switch (processor) {
    case 'amd64':
      return [...new Set([own, `${os}/amd64/v1`, `${os}/386`])]
    case 'arm64':
      return [...new Set([own, `${os}/arm64/v8`, ...arm('v8')])]
    case 'arm':
      return [...new Set([own, ...arm(variant ?? '')])]
    default:
      return [own]
  }
}

function normal(platform: string): string {
  const [os = '', name = '', told] = platform.split('/')
  const processor = otherNames[name] ?? name
  const variant =
    told === '8' || told === '7' || told === '6' ? `v${told}` : (told ?? usualVariants[processor])
  return [os, processor, ...(variant === undefined ? [] : [variant])].join('/')
}
