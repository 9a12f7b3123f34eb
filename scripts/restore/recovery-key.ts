import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Variables } from '../../core/config/environment.js'
import { RestoreError } from '../../plugins/platform-backups/restore/restore-target.js'

const beginning = 'AGE-SECRET-KEY-'

/** From a file, from BUSBAR_RECOVERY_KEY, or from whoever sits at the terminal: never from the arguments, which everybody on a machine sees. */
export async function readRecoveryKey(file: string | undefined, variable: Variables): Promise<string> {
  if (file !== undefined) return keyIn(await readFile(file, 'utf8'), file)
  const given = variable('BUSBAR_RECOVERY_KEY')
  if (given !== undefined) return keyIn(given, 'BUSBAR_RECOVERY_KEY')
  if (!process.stdin.isTTY)
    throw new RestoreError(
      'the archive is encrypted: give the recovery key by --key-file or BUSBAR_RECOVERY_KEY. Whoever has lost it cannot open the archive, and nobody can help'
    )
  return keyIn(await ask('The recovery key (AGE-SECRET-KEY-…), which is not shown: '), 'what was typed')
}

/** The first key of a text, as age-keygen writes its files: lines with `#` are comments. */
function keyIn(text: string, source: string): string {
  const found = text
    .split('\n')
    .map(line => line.trim())
    .find(line => line.startsWith(beginning))
  if (found === undefined) throw new RestoreError(`${source} holds no recovery key (${beginning}…)`)
  return found
}

async function ask(question: string): Promise<string> {
  process.stdout.write(question)
  const silent = new Writable({
    write: (_chunk, _encoding, done) => {
      done()
    }
  })
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    process.stdout.write('\n')
  }
}
