import type { EngineClient } from './engine-client.js'
import { readEngineError } from './engine-failure.js'

/** The engine's words, as a failure of its own (500), for an image that is being removed at the same time. */
const isGone = (words: string): boolean => /unrecognized image ID|no such image/i.test(words)

/** Removes the image of a step, unless it is gone or something has come to need it since (409). */
export async function removeStep(
  engine: EngineClient,
  id: string,
  options: { readonly noprune?: true } = {}
): Promise<void> {
  await engine.call(
    'remove a step of a build',
    async docker => {
      await docker
        .getImage(id)
        .remove(options)
        .catch((error: unknown) => {
          if (!isGone(readEngineError(error).words)) throw error
        })
    },
    { absent: [404, 409] }
  )
}
