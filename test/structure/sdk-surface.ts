import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const surfaceFile = 'docs/sdk-surface.txt'
const entries = [
  'sdk/index.ts',
  'sdk/age/index.ts',
  'sdk/disk/index.ts',
  'sdk/http1/index.ts',
  'sdk/s3/index.ts',
  'sdk/tar/index.ts'
]
const heading =
  '# What authors of plugins can import, as the compiler declares it. `npm run surface` writes it anew: a change here is one for them.\n'

/** The declarations of every file that the entries of the SDK lead to, without comments and bodies. */
export function sdkSurface(root: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'busbar-surface-'))
  try {
    const out = join(directory, 'out')
    writeFileSync(
      join(directory, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.json'),
        compilerOptions: {
          noEmit: false,
          declaration: true,
          emitDeclarationOnly: true,
          removeComments: true,
          outDir: out,
          rootDir: root,
          typeRoots: [join(root, 'node_modules/@types')]
        },
        include: [],
        files: entries.map(entry => join(root, entry))
      })
    )
    // The compiler cannot take what the test runner puts into NODE_OPTIONS of every process.
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    execFileSync('env', ['-u', 'NODE_OPTIONS', process.execPath, compiler, '-p', directory])
    const declared = readdirSync(out, { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.d.ts'))
      .sort()
    return [
      heading,
      ...declared.map(path => `\n## ${path}\n\n${readFileSync(join(out, path), 'utf8')}`)
    ].join('')
  } finally {
    rmSync(directory, { recursive: true })
  }
}
