import { longestNeedle, NeedleSet, type Span } from './needle-set.js'
import { PieceSet } from './piece-set.js'
import { formsOfAll } from './secret-forms.js'

/** Secret values in all their forms, added and removed in groups. */
export class SecretSet {
  readonly #groups = new Set<{ readonly needles: () => NeedleSet }>()
  readonly #pieces = new PieceSet()
  readonly #removals = new Set<() => void>()

  get isEmpty(): boolean {
    return this.#groups.size === 0 && this.#pieces.isEmpty
  }

  /** Each addition counts by itself until the function it returned was called: what others add and remove does not affect it. */
  add(values: readonly string[]): () => void {
    const forms = [...new Set(formsOfAll(values))]
    const short = forms.filter(({ length }) => length <= longestNeedle)
    const long = forms.filter(({ length }) => length > longestNeedle)
    let compiled: NeedleSet | undefined
    const group = { needles: () => (compiled ??= new NeedleSet(short)) }
    if (short.length > 0) this.#groups.add(group)
    for (const needle of long) this.#pieces.add(needle)
    const remove = (): void => {
      this.#groups.delete(group)
      for (const needle of long.splice(0)) this.#pieces.remove(needle)
      this.#removals.delete(remove)
    }
    this.#removals.add(remove)
    return remove
  }

  clear(): void {
    for (const remove of this.#removals) remove()
  }

  isIn(text: string): boolean {
    if (this.#pieces.find(text) !== undefined) return true
    for (const { needles } of this.#groups) if (needles().find(text) !== undefined) return true
    return false
  }

  *spans(text: string): Generator<Span> {
    yield* spansOf(this.#pieces, text)
    for (const { needles } of this.#groups) yield* spansOf(needles(), text)
  }
}

function* spansOf(set: NeedleSet | PieceSet, text: string): Generator<Span> {
  for (let match = set.find(text); match !== undefined; match = set.find(text, match.start + 1)) yield match
}
