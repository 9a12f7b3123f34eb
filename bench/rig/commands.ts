import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export const execute = promisify(execFile)

/** What a docker command says; with the classic builder, as the platform uses it and as buildx is not everywhere. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await execute('docker', args, { env: { ...process.env, DOCKER_BUILDKIT: '0' } })
  return stdout.trim()
}
