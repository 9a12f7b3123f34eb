import type { Problem } from 'busbar/sdk'
import { problems } from './problems.js'

/** The engine's words about an archive that it has not taken in, as a problem with a remedy. */
export function loadProblem(words: string): Problem {
  const reason = words.replace(/^Error response from daemon: /, '').trim()
  if (/no space left on device|disk quota exceeded/i.test(reason))
    return problems.diskFull({ task: 'take in an image', reason })
  // The first layer that is left out and not held is looked for among the files of the archive.
  if (
    /\blayer-\d{1,4}\.tar: no such file or directory|content digest sha256:[0-9a-f]{64}: not found/i.test(
      reason
    )
  )
    return problems.imageIncomplete({ reason })
  if (/cannot be used on this platform|operating system/i.test(reason))
    return problems.imageArchivePlatform({ reason })
  return problems.imageArchive({ reason })
}
