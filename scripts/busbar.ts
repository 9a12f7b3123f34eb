/** The command `busbar`, for what is done while the platform does not run. */
import { restoreCommand } from './restore/restore-command.js'

const usage = `busbar restore <archive>             restores the platform from a file
busbar restore --remote <name>       from the bucket that BACKUP_S3_… name; "latest" is the newest
busbar restore --list                names the archives in that bucket
busbar restore --abandon             forgets a restore that was cut off before it changed anything

  --key-file <file>     the recovery key; without it BUSBAR_RECOVERY_KEY, or else it is asked for
  --replace             replaces the data that is there, once that has been backed up
  --trial               restores a copy beside the original: its schedules and its bucket are off, files
                        that the original has written are never removed
  --without-snapshot    does not back that up
  --without-keys        restores an archive that has no keys where these are not here: secrets are lost

It restores into BUSBAR_DIR and DATABASE_URL, as the platform uses them. Stop the platform first.`

async function main([command, ...rest]: readonly string[]): Promise<number> {
  if (command === 'restore' && !rest.includes('--help')) return await restoreCommand(rest)
  const isAsked =
    command === undefined || command === 'help' || rest.includes('--help') || command === '--help'
  if (isAsked) process.stdout.write(`${usage}\n`)
  else process.stderr.write(`there is no command ${command}\n\n${usage}\n`)
  return isAsked ? 0 : 2
}

main(process.argv.slice(2)).then(
  code => {
    process.exit(code)
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    process.exit(1)
  }
)
