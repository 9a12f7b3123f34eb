import { invalid } from './problems.js'

/** The stage of a Dockerfile that becomes the image, by its name or number; null: the last one. Throws a 400 that names it. */
export function parseTarget(text: string | null | undefined): string | null {
  const target = text?.trim() ?? ''
  if (target === '') return null
  // As stages can be called.
  if (!/^[a-z0-9][\w.-]{0,127}$/i.test(target))
    throw invalid(
      'build_target',
      'must be the name of a stage, as FROM … AS gives it: letters, digits, - _ and .'
    )
  return target
}

/** As Docker calls kinds of machines, with the names that others have for them. */
const architectures: Readonly<Record<string, string>> = {
  amd64: 'amd64',
  x86_64: 'amd64',
  arm64: 'arm64',
  aarch64: 'arm64',
  arm: 'arm',
  '386': '386',
  i386: '386',
  ppc64le: 'ppc64le',
  s390x: 's390x',
  riscv64: 'riscv64',
  loong64: 'loong64'
}
const known = [...new Set(Object.values(architectures))].map(name => `linux/${name}`).join(', ')

/** What kind of machine an image is made for, as `linux/arm64`; null: the one that runs it. Throws a 400 that names it. */
export function parsePlatform(text: string | null | undefined): string | null {
  const platform = text?.trim().toLowerCase() ?? ''
  if (platform === '') return null
  const [system, name = '', variant, ...rest] = platform.split('/')
  const architecture = Object.hasOwn(architectures, name) ? architectures[name] : undefined
  const isVariant = variant === undefined || /^v\d{1,2}$/.test(variant)
  if (system !== 'linux' || architecture === undefined || !isVariant || rest.length > 0)
    throw invalid(
      'build_platform',
      `must be one platform, as os/architecture or os/architecture/variant: ${known}, linux/arm/v7`
    )
  return ['linux', architecture, ...(variant === undefined ? [] : [variant])].join('/')
}
