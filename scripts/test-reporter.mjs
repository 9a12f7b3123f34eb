/**
 * tap's reporter for this project: one line a file, every failure with its evidence, and a last line
 * `N passed, N failed` that counts tests (sentences), not assertions. It looks the same on a terminal
 * and in a log; tap's own reporters draw on the screen. Files that share a process have a line each all the same.
 * Files that are not begun as it is too late (`TEST_UNTIL`) are told, too.
 * `FAILED_FILES` names a file for the names of those that failed, a line each.
 */
import { writeFileSync } from 'node:fs'
import { Transform } from 'node:stream'
import { Parser } from 'tap-parser'
import { isGroup } from './test-groups.mjs'

export default class TestReporter extends Transform {
  #parser = new Parser()
  #total = { passed: 0, failed: 0, skipped: 0 }
  #files = new Map()
  #failed = []
  #leftOut = 0

  constructor() {
    super()
    this.#followFiles(this.#parser)
    this.#parser.on('bailout', reason => this.push(`bail out: ${reason}\n`))
  }

  #followFiles(parser) {
    const groups = new Map()
    parser.on('child', child => {
      if (!isGroup(child.name)) return this.#follow(child)
      groups.set(child.name, { failed: this.#failed.length })
      this.#followFiles(child)
    })
    parser.on('assert', result => {
      const group = groups.get(result.name)
      // one that fails though none of its files has is said as a whole, as it may have ended before its end
      if (group === undefined || (isFailure(result) && group.failed === this.#failed.length))
        this.#finishFile(result)
    })
  }

  _transform(chunk, _encoding, done) {
    this.#parser.write(chunk)
    done()
  }

  _flush(done) {
    this.#parser.on('complete', () => {
      const { passed, failed, skipped } = this.#total
      if (this.#leftOut > 0) this.push(`\n${this.#leftOut} files left out for want of time\n`)
      this.push(`\n${skipped > 0 ? `${skipped} skipped\n` : ''}${passed} passed, ${failed} failed\n`)
      if (process.env.FAILED_FILES !== undefined)
        writeFileSync(process.env.FAILED_FILES, this.#failed.map(name => `${name}\n`).join(''))
      done()
    })
    this.#parser.end()
  }

  #follow(file) {
    const seen = { passed: 0, failed: 0, skipped: 0, evidence: [] }
    this.#files.set(file.name, seen)
    countTests(file, seen, true)
    collectFailures(file, [], seen.evidence)
  }

  #finishFile(result) {
    const seen = this.#files.get(result.name) ?? { passed: 0, failed: 0, skipped: 0, evidence: [] }
    this.#files.delete(result.name)
    // a file can fail without a failed test: it did not load, it ran out of time, it left a handle open
    if (!result.ok && seen.failed === 0) {
      seen.failed = 1
      seen.evidence.push(indent(`${result.name} failed as a whole\n${describe(result.diag)}`))
    }
    if (mayBeLate && result.ok && seen.passed + seen.skipped === 0) {
      this.#leftOut++
      this.push(`LEFT OUT ${result.name}\n`)
      return
    }
    if (!result.ok) this.#failed.push(result.name)
    for (const key of Object.keys(this.#total)) this.#total[key] += seen[key]
    const counts = [
      `${seen.passed} passed`,
      seen.failed > 0 && `${seen.failed} FAILED`,
      seen.skipped > 0 && `${seen.skipped} skipped`
    ]
    const seconds = ((result.time ?? 0) / 1000).toFixed(1)
    this.push(
      `${result.ok ? 'ok  ' : 'FAIL'} ${result.name}  ${counts.filter(Boolean).join(', ')}  ${seconds} s\n`
    )
    for (const line of seen.evidence) this.push(`${line}\n`)
  }
}

/**
 * Counts the innermost tests: one that only holds others is counted by them, unless it fails by itself.
 * Assertions outside of every test count as tests of the file.
 */
function countTests(parser, seen, isFile) {
  const inside = new Map()
  parser.on('child', child => {
    const own = { passed: 0, failed: 0, skipped: 0, evidence: seen.evidence }
    inside.set(child.name, own)
    countTests(child, own, false)
  })
  parser.on('assert', result => {
    const own = inside.get(result.name)
    inside.delete(result.name)
    if (own !== undefined && own.passed + own.failed + own.skipped > 0) {
      for (const key of ['passed', 'failed', 'skipped']) seen[key] += own[key]
      if (isFailure(result) && own.failed === 0) seen.failed++
    } else if (own !== undefined || isFile) {
      if (result.skip) {
        seen.skipped++
        seen.evidence.push(`  skipped: ${result.name} (${result.skip})`)
      } else if (isFailure(result)) seen.failed++
      else seen.passed++
    }
  })
}

/** Writes down the innermost failures: those that no failed subtest explains. */
function collectFailures(parser, path, evidence) {
  const failedChildren = new Set()
  parser.on('child', child => {
    collectFailures(child, [...path, child.name], evidence)
    child.on('assert', result => {
      if (isFailure(result)) failedChildren.add(child.name)
    })
  })
  parser.on('assert', result => {
    if (!isFailure(result) || failedChildren.has(result.name)) return
    evidence.push(indent(`not ok: ${[...path, result.name].join(' › ')}\n${describe(result.diag)}`))
  })
}

const mayBeLate = process.env.TEST_UNTIL !== undefined

const isFailure = result => !result.ok && !result.skip && !result.todo

/** What helps a reader most, in this order; the rest of tap's diagnostics is noise. */
function describe(diag) {
  if (diag === null || typeof diag !== 'object') return ''
  const { at, diff, found, wanted, stack, error, message, code, cmd, stderr, exitCode, signal, timeout } =
    diag
  const place = at?.fileName === undefined ? undefined : `at ${at.fileName}:${at.lineNumber}`
  const facts = {
    exitCode,
    signal,
    timeout,
    code,
    error,
    message,
    cmd,
    // a program that a test ran says last why it failed
    stderr: typeof stderr === 'string' ? stderr.slice(-1000) : undefined,
    ...(diff === undefined ? { found, wanted } : {})
  }
  const told = Object.entries(facts)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [place, ...told, diff, stack].filter(Boolean).map(indent).join('\n')
}

const indent = text =>
  text
    .trimEnd()
    .split('\n')
    .map(line => `  ${line}`)
    .join('\n')
