import { longestNeedle, NeedleSet, type Span } from './needle-set.js'
import { PieceSet } from './piece-set.js'
import { formsOfAll } from './secret-forms.js'

type Search = (text: string, from: number) => Span | undefined

/** Secret values in all their forms, added and taken back in groups. */
export class SecretSet {
  readonly #groups = new Set<{ readonly needles: () => NeedleSet }>()
  readonly #pieces = new PieceSet()
  readonly #removals = new Set<() => void>()

  get isEmpty(): boolean {
    return this.#groups.size === 0 && this.#pieces.isEmpty
  }

  /** Each addition counts by itself until the function it returned was called: what others add and take back costs it nothing. */
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
    return this.#searches().some(find => find(text, 0) !== undefined)
  }

  *spans(text: string): Generator<Span> {
    for (const find of this.#searches()) {
      for (let match = find(text, 0); match !== undefined; match = find(text, match.start + 1)) yield match
    }
  }

  #searches(): Search[] {
    const inGroups = [...this.#groups].map(
      ({ needles }): Search =>
        (text, from) =>
          needles().find(text, from)
    )
    return this.#pieces.isEmpty ? inGroups : [(text, from) => this.#pieces.find(text, from), ...inGroups]
  }
}
