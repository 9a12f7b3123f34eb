import { execFile } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const script = join(import.meta.dirname, '../../../lab/get-caddy.sh')

/** From now on, tests of this process run the newest Caddy that there is instead of the machine's. */
export async function useNewestCaddy(): Promise<void> {
  const { stdout } = await promisify(execFile)(script)
  process.env.PATH = [dirname(stdout.trim()), process.env.PATH].join(delimiter)
}
