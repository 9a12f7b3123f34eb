/** A defect that changes nothing that a test could see. */
interface Equivalent {
  readonly file: string
  /** The line, without its indentation. */
  readonly text: string
  /** As the table of survivors shows it: `a < b → a <= b`. */
  readonly change: string
  readonly why: string
}

export const equivalents: readonly Equivalent[] = [
  {
    file: 'core/bus/message-encoder.ts',
    text: "const json = JSON.stringify(data ?? null) ?? 'null'",
    change: 'data ?? null → data',
    why: 'what has no JSON becomes null one step later'
  },
  {
    file: 'core/event-loop/stack-sampler-worker.ts',
    text: 'if (!isOpen || hasTurned(beat)) return close()',
    change: '!isOpen || hasTurned(beat) → false',
    why: 'what is said of a beat that is over is not looked at, and the thread goes on as well; only the time differs'
  },
  {
    file: 'core/event-loop/stack-sampler-worker.ts',
    text: 'if (!isOpen || hasTurned(beat)) return close()',
    change: '!isOpen || hasTurned(beat) → ((!isOpen) && (hasTurned(beat)))',
    why: 'what is said of a beat that is over is not looked at, and the thread goes on as well; only the time differs'
  },
  {
    file: 'core/http/answer-writer.ts',
    text: 'if (copy === undefined) copy = declaredCopier(part.schema as TSchema) ?? null',
    change: 'declaredCopier(part.schema as TSchema) ?? null → declaredCopier(part.schema as TSchema)',
    why: 'a copier that is not there throws like one that refuses; only the time differs'
  },
  {
    file: 'core/schemas/did-you-mean.ts',
    text: 'Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === b[j] ? 0 : 1))',
    change: 'next[j] ?? 0 → next[j]',
    why: 'a row has an entry for each letter; the other side is for the types'
  },
  {
    file: 'core/http/route-table.ts',
    text: "const other = right[at] ?? ''",
    change: "right[at] ?? '' → right[at]",
    why: 'both have as many segments; the other side is for the types'
  },
  {
    file: 'plugins/builds/admission/admission-turns.ts',
    text: 'return value < other',
    change: 'value < other → value <= other',
    why: 'equal values have been passed over'
  },
  {
    file: 'plugins/builds/admission/admission-turns.ts',
    text: 'return false',
    change: 'false → true',
    why: 'ranks end in the id of the build, so none is that of another'
  },
  {
    file: 'plugins/builds/admission/admission-turns.ts',
    text: 'lastAdmitted.get(ownerOf(build))?.getTime() ?? 0,',
    change: '0 → 1',
    why: 'no turn was in the first millisecond of 1970'
  },
  {
    file: 'plugins/builds/admission/admission-turns.ts',
    text: 'lastAdmitted.get(projectId)?.getTime() ?? 0,',
    change: '0 → 1',
    why: 'no turn was in the first millisecond of 1970'
  },
  {
    file: 'plugins/builds/disk/count-times.ts',
    text: '#dueAt = 0',
    change: '0 → 1',
    why: 'no process counts files in the first millisecond of its life'
  },
  {
    file: 'plugins/builds/dockerfile/environment-pairs.ts',
    text: 'const end = skipWord(text, 0)',
    change: '0 → 1',
    why: 'what follows an instruction begins with a word, which ends at the same place'
  },
  {
    file: 'plugins/builds/engines/engine-kinds.ts',
    text: '.sort((a, b) => b.preference - a.preference || (a.program.kind < b.program.kind ? -1 : 1))',
    change: 'a.program.kind < b.program.kind → a.program.kind <= b.program.kind',
    why: 'no two kinds have one name'
  },
  {
    file: 'plugins/runtime-docker/build-cache.ts',
    text: 'const { createdAt = new Date(0), owner: of } = all.get(id) ?? {}',
    change: 'all.get(id) ?? {} → all.get(id)',
    why: 'only images of the listing are asked about; the other side is for the types'
  },
  {
    file: 'plugins/metrics/application/application-history.ts',
    text: "this.#noteFailure('the history of applications cannot be kept', error)",
    change: "this.#noteFailure('the history of applications cannot be kept', error) → (nothing)",
    why: 'each step tells of its own failures; this is for what nobody has thought of'
  },
  {
    file: 'plugins/metrics/prometheus/figure.ts',
    text: 'soFar += counts[at] ?? 0',
    change: '0 → 1',
    why: 'there is a count for each bound, and for what is above; the other side is for the types'
  },
  {
    file: 'plugins/platform/figures.ts',
    text: 'inactive: inactive?.rest ?? 0,',
    change: 'inactive?.rest ?? 0 → inactive?.rest',
    why: 'each status has its part; the other side is for the types'
  },
  {
    file: 'core/database/session-state.ts',
    text: 'if (namedTexts.size >= mostNamedTexts) namedTexts.clear()',
    change: 'namedTexts.size >= mostNamedTexts → namedTexts.size > mostNamedTexts',
    why: 'one text more is kept before all are forgotten'
  },
  {
    file: 'core/database/statement.ts',
    text: 'this.wire.shapes.set(this.name, shape)',
    change: 'this.wire.shapes.set(this.name, shape) → (nothing)',
    why: 'the reader of rows is made again for each answer; only the time differs'
  },
  {
    file: 'plugins/audit-logs/audit-service.ts',
    text: "record.ip_address ?? ''",
    change: "record.ip_address ?? '' → record.ip_address",
    why: 'null is written as an empty cell too; the other side is for the types'
  },
  {
    file: 'plugins/audit-logs/audit-service.ts',
    text: "record.resource_name === '' ? (record.resource_id ?? '') : record.resource_name,",
    change: "record.resource_id ?? '' → record.resource_id",
    why: 'null is written as an empty cell too; the other side is for the types'
  },
  {
    file: 'sdk/http1/forwarding/header-rules.ts',
    text: "else headers[key] = [before ?? '', value]",
    change: "before ?? '' → before",
    why: 'a header that has a spelling has a value; the other side is for the types'
  }
]

/** Files that are not tried, by a beginning of their path. */
export const untried: readonly { readonly beginning: string; readonly why: string }[] = [
  { beginning: 'core/main.ts', why: 'the program itself, which CI starts' },
  { beginning: 'core/exec/process-group.ts', why: 'a defect could end other processes of this machine' },
  {
    beginning: 'plugins/builds/context/workspace.ts',
    why: 'a defect could end other processes of this machine'
  }
]
