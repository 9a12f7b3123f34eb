import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const config = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
`

/** What `git init` makes without a template, but without a process, which takes as long as a small repository is on its way. */
export async function makeEmptyRepository(directory: string): Promise<void> {
  const folder = join(directory, '.git')
  await mkdir(folder)
  await Promise.all([
    mkdir(join(folder, 'objects')),
    mkdir(join(folder, 'refs')),
    writeFile(join(folder, 'HEAD'), 'ref: refs/heads/main\n'),
    writeFile(join(folder, 'config'), config)
  ])
}
