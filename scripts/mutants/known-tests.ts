import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CameBy, readCoverage } from './came-by.js'
import type { Bench } from './workshop.js'

/** What a test does without a defect; null when it fails then, or takes too long. */
export interface KnownTest {
  readonly test: string
  readonly ms: number
  /** By file. */
  readonly cameBy: ReadonlyMap<string, CameBy>
}

/** Runs each test once without a defect. What came of it is kept until a source, or the test, changes. */
export class KnownTests {
  readonly #known = new Map<string, Promise<KnownTest | null>>()
  readonly #kept: string
  readonly #sources: string

  constructor(
    private readonly root: string,
    /** All sources that are not tests, and what the tests share. */
    sources: readonly string[],
    engine: boolean,
    /** A test that takes longer is not asked: it is the limit of a defect, too. */
    private readonly longestMs: number
  ) {
    this.#kept = join(root, '.lab', 'mutants')
    mkdirSync(this.#kept, { recursive: true })
    writeFileSync(join(root, '.lab', '.gitignore'), '*\n')
    const hash = createHash('sha256').update(String(engine))
    for (const file of sources) hash.update(file).update(readFileSync(join(root, file)))
    this.#sources = hash.digest('hex')
  }

  /** One at a time in each workshop, and each test once. */
  async learn(test: string, workshop: Bench): Promise<KnownTest | null> {
    const known = this.#known.get(test) ?? this.#learn(test, workshop)
    this.#known.set(test, known)
    return await known
  }

  async #learn(test: string, workshop: Bench): Promise<KnownTest | null> {
    const known = this.#read(test) ?? (await this.#run(test, workshop))
    console.log(`without a defect ${test} ${known === null ? 'FAILS' : `${known.ms} ms`}`)
    return known
  }

  async #run(test: string, workshop: Bench): Promise<KnownTest | null> {
    const coverage = mkdtempSync(join(workshop.directory, '.lab', 'coverage-'))
    try {
      const start = performance.now()
      const outcome = await workshop.run({ test, limitMs: this.longestMs, coverage })
      if (outcome !== 'passed') return null
      const ms = Math.round(performance.now() - start)
      const cameBy = readCoverage(coverage, workshop.directory, file =>
        file.endsWith('.ts') && /^(?:core|plugins|sdk)\//.test(file) && !file.includes('/test/')
          ? readFileSync(join(this.root, file), 'utf8')
          : undefined
      )
      this.#write({ test, ms, cameBy })
      return { test, ms, cameBy }
    } finally {
      rmSync(coverage, { recursive: true, force: true })
    }
  }

  #place(test: string): string {
    const hash = createHash('sha256')
      .update(this.#sources)
      .update(readFileSync(join(this.root, test)))
    return join(this.#kept, `${hash.update(test).digest('hex').slice(0, 32)}.json`)
  }

  #read(test: string): KnownTest | undefined {
    const place = this.#place(test)
    if (!existsSync(place)) return undefined
    const { ms, cameBy } = JSON.parse(readFileSync(place, 'utf8')) as {
      ms: number
      cameBy: [string, [number, boolean][]][]
    }
    return { test, ms, cameBy: new Map(cameBy.map(([file, places]) => [file, new Map(places)])) }
  }

  #write({ test, ms, cameBy }: KnownTest): void {
    const plain = [...cameBy].map(([file, places]) => [file, [...places]])
    writeFileSync(this.#place(test), JSON.stringify({ ms, cameBy: plain }))
  }
}
