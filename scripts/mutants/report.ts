import { dirname } from 'node:path'
import type { Mutant } from './mutations.js'
import type { Options } from './options.js'
import type { Verdict } from './trial.js'

export interface Judged {
  readonly mutant: Mutant
  readonly verdict: Verdict
}

/** Prints what came of a run. Returns the status to end with: 1 when too little was caught. */
export function report(judged: readonly Judged[], { floor, seed }: Options): 0 | 1 {
  const of = (kind: Verdict['kind']): Judged[] => judged.filter(({ verdict }) => verdict.kind === kind)
  const [caught, hung, survived, unjudged] = [of('caught'), of('hung'), of('survived'), of('not judged')]
  list('Survived', survived, verdict =>
    verdict.kind === 'survived' && verdict.asked === 0 ? 'no test comes by' : ''
  )
  list('Noticed by a hang', hung, verdict => (verdict.kind === 'hung' ? verdict.by : ''))
  list('Not judged', unjudged, verdict => (verdict.kind === 'not judged' ? verdict.why : ''))
  console.log('\nBy folder')
  const folders = new Map<string, Judged[]>()
  for (const one of judged) {
    if (one.verdict.kind === 'not judged') continue
    const folder = folderOf(one.mutant.file)
    folders.set(folder, [...(folders.get(folder) ?? []), one])
  }
  for (const [folder, ones] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const noticed = ones.filter(({ verdict }) => verdict.kind !== 'survived').length
    console.log(`  ${folder.padEnd(34)} ${noticed} of ${ones.length}  ${percent(noticed, ones.length)} %`)
  }
  const noticed = caught.length + hung.length
  const all = noticed + survived.length
  console.log(
    `\n${noticed} of ${all} caught (${percent(noticed, all)} %), ${hung.length} of them by a hang; ${unjudged.length} not judged; --seed ${seed}`
  )
  return all > 0 && (100 * noticed) / all < floor ? 1 : 0
}

function list(title: string, ones: readonly Judged[], note: (verdict: Verdict) => string): void {
  if (ones.length === 0) return
  console.log(`\n${title}`)
  const places = [...ones].sort((a, b) =>
    a.mutant.file === b.mutant.file ? a.mutant.line - b.mutant.line : a.mutant.file < b.mutant.file ? -1 : 1
  )
  for (const { mutant, verdict } of places)
    console.log(
      `  ${`${mutant.file}:${mutant.line}`.padEnd(44)} ${mutant.change}  ${note(verdict)}`.trimEnd()
    )
}

/** `core/http`, `plugins/deployments/rollout`, `plugins/direct`. */
const folderOf = (file: string): string =>
  dirname(file)
    .split('/')
    .slice(0, file.startsWith('core/') ? 2 : 3)
    .join('/')

const percent = (part: number, all: number): string => (all === 0 ? '–' : ((100 * part) / all).toFixed(1))
