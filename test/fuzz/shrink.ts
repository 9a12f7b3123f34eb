import type { Conversation } from './requests.js'

/** The conversation that fails by itself, else all of them; and of its bytes no more than it takes. */
export async function shrink(
  input: readonly Conversation[],
  forMs: number,
  fails: (input: readonly Conversation[]) => Promise<boolean>
): Promise<readonly Conversation[]> {
  const end = performance.now() + forMs
  for (const one of input) {
    if (performance.now() > end || !(await fails([one]))) continue
    return [await shorten(one, end, async candidate => await fails([candidate]))]
  }
  return input
}

async function shorten(
  conversation: Conversation,
  end: number,
  fails: (candidate: Conversation) => Promise<boolean>
): Promise<Conversation> {
  let least = conversation
  const whole = { ...least, pieces: [least.pieces.join('')] }
  if (await fails(whole)) least = whole
  for (let size = longest(least); size >= 1 && performance.now() < end; size = Math.floor(size / 2)) {
    for (let place = 0; place < least.pieces.length; place += 1) {
      for (let at = 0; at < (least.pieces[place]?.length ?? 0) && performance.now() < end; ) {
        const pieces = least.pieces.map((piece, index) =>
          index === place ? piece.slice(0, at) + piece.slice(at + size) : piece
        )
        if (await fails({ ...least, pieces })) least = { ...least, pieces }
        else at += size
      }
    }
  }
  return least
}

const longest = ({ pieces }: Conversation): number =>
  Math.ceil(Math.max(...pieces.map(piece => piece.length)) / 2)
