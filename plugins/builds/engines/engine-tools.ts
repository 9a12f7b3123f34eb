import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { problems } from '../problems.js'
import { BadResult, type ContainerFiles } from './container-files.js'
import { toolsPath } from './engine-program.js'

/** Those of other versions are in nobody's way where a build still runs one: its file is open. */
const taking = `set -e
echo "$3  $1" | sha256sum -c >/dev/null
chmod 755 "$1"
mkdir -p "\${2%/*}"
mv "$1" "$2"
for old in "\${2%-*}"-*; do [ "$old" = "$2" ] || rm -f "$old"; done`

/**
 * Gives a build engine a program of the platform's machine, once for each version of it, and answers where it is. `workDirectory`:
 * of the build alone.
 */
export async function supplyTool(
  files: ContainerFiles,
  { path, workDirectory }: { readonly path: string; readonly workDirectory: string }
): Promise<string> {
  const name = basename(path)
  const digest = await digestOf(path)
  const target = `${toolsPath}/${name}-${digest}`
  if ((await files.run(['sh', '-c', 'test -x "$0" && echo yes || echo no', target]))[0] === 'yes')
    return target
  const { size } = await stat(path)
  await files.writeLarge(workDirectory, { name, size, content: createReadStream(path) })
  await files.run(['sh', '-c', taking, 'take', `${workDirectory}/${name}`, target, digest])
  try {
    await files.run([target, 'version'], { HOME: workDirectory })
  } catch (error) {
    if (!(error instanceof BadResult)) throw error
    await files.run(['rm', '-f', target])
    throw problems.toolNotPortable({ program: name, path, reason: error.message.slice(0, 400) })
  }
  return target
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
