import type { RequestContext } from './request-context.js'

/**
 * The requests under way, in no order. A list and not a Set: a Set that many come into and go from is
 * copied again and again, and each copy refers to the next one with all that it held. The oldest of them
 * soon lie where only a full collection looks, and until then nothing of any request was given back.
 */
export class InFlight {
  readonly contexts: RequestContext[] = []

  add(context: RequestContext): void {
    context.place = this.contexts.push(context) - 1
  }

  /** The last one takes the free place. Nothing happens to one that is not among them any more. */
  delete(context: RequestContext): void {
    if (this.contexts[context.place] !== context) return
    const last = this.contexts.pop()
    if (last === undefined || last === context) return
    this.contexts[context.place] = last
    last.place = context.place
  }
}
