import { registryOf } from 'busbar/api/images'
import { parsePlatform, parseTarget } from './build-choices.js'
import { imageType, requireBuildType } from './build-types.js'
import { invalid, problems } from './problems.js'
import type { ApplicationRow, ChangeSourceBody, CreateBody, UpdateBody } from './schemas.js'
import { addressOf, parseBranch, parseBuildpacks, parseImage, parsePath, parseRepo } from './source-text.js'
import { parseStartCommand } from './start-command.js'

/** The columns that say where an application comes from and how it is built. */
type SourceColumns = Pick<
  ApplicationRow,
  | 'type'
  | 'build_type'
  | 'build_type_override'
  | 'builder_image'
  | 'custom_buildpacks'
  | 'source_kind'
  | 'source_ref'
  | 'source_repo'
  | 'source_image'
  | 'branch'
  | 'auto_deploy_branch'
  | 'dockerfile_path'
  | 'root_directory'
  | 'build_target'
  | 'build_platform'
  | 'start_command'
>

const nothing = {
  build_type_override: null,
  builder_image: null,
  custom_buildpacks: '[]',
  source_kind: null,
  source_ref: null,
  source_repo: null,
  source_image: null,
  branch: null,
  auto_deploy_branch: null,
  dockerfile_path: null,
  root_directory: null,
  build_target: null,
  build_platform: null
} as const

/** What a body says of the account of the registry. */
type RegistryFields = Pick<UpdateBody, 'registry_username' | 'registry_password'>

const isGiven = (text: string | null | undefined): text is string =>
  text !== undefined && text !== null && text.trim() !== ''

/** The source of a new application, or the one it changes to: nothing of another source is left. */
export function decideSource(
  body: CreateBody | ChangeSourceBody,
  buildTypes: readonly string[]
): SourceColumns {
  const source = body.type === 'image' ? imageSource(body) : gitSource(body, buildTypes)
  // It names programs of that source.
  return { ...source, start_command: parseStartCommand(body.start_command ?? null) }
}

function imageSource(body: CreateBody | ChangeSourceBody): Omit<SourceColumns, 'start_command'> {
  for (const field of ['source_repo', 'dockerfile_path', 'build_target', 'build_platform'] as const)
    refuseOnImage(field, body[field])
  if (body.build_type !== undefined && body.build_type !== imageType)
    throw invalid('build_type', 'must be image for an image application')
  return {
    ...nothing,
    type: 'image',
    build_type: imageType,
    source_image: parseImage(body.source_image, 'source_image')
  }
}

function gitSource(
  body: CreateBody | ChangeSourceBody,
  buildTypes: readonly string[]
): Omit<SourceColumns, 'start_command'> {
  const buildType = requireBuildType('build_type', body.build_type ?? 'railpack', buildTypes)
  refuseOnGit(body)
  const branch = parseBranch(body.branch)
  return {
    ...nothing,
    type: 'git',
    build_type: buildType,
    source_repo: parseRepo(body.source_repo),
    branch,
    auto_deploy_branch: branch,
    dockerfile_path: parsePath(body.dockerfile_path, 'dockerfile_path'),
    root_directory: parsePath(body.root_directory, 'root_directory'),
    build_target: parseTarget(body.build_target),
    build_platform: parsePlatform(body.build_platform)
  }
}

function refuseOnImage(field: string, value: string | null | undefined): void {
  if (isGiven(value)) throw invalid(field, 'belongs to git applications; this one runs an image')
}

function refuseOnGit(body: RegistryFields & { readonly source_image?: string }): void {
  for (const field of ['source_image', 'registry_username', 'registry_password'] as const) {
    if (isGiven(body[field]))
      throw invalid(field, 'belongs to image applications; this one is built from git')
  }
}

/** What an update changes of the source: absent keeps, null or empty clears where there is a default. */
export function decideSourceUpdate(
  current: ApplicationRow,
  body: UpdateBody,
  buildTypes: readonly string[]
): Partial<SourceColumns> {
  return {
    ...(current.type === 'image' ? imageUpdate(body) : gitUpdate(current, body, buildTypes)),
    ...(body.start_command !== undefined && { start_command: parseStartCommand(body.start_command) })
  }
}

function imageUpdate(body: UpdateBody): Partial<SourceColumns> {
  for (const field of [
    'source_repo',
    'build_type_override',
    'dockerfile_path',
    'build_target',
    'build_platform'
  ] as const)
    refuseOnImage(field, body[field])
  return body.source_image === undefined
    ? {}
    : { source_image: parseImage(body.source_image, 'source_image') }
}

function gitUpdate(
  current: ApplicationRow,
  body: UpdateBody,
  buildTypes: readonly string[]
): Partial<SourceColumns> {
  refuseOnGit(body)
  return {
    ...(body.source_repo !== undefined && { source_repo: parseRepo(body.source_repo) }),
    ...(body.branch !== undefined && { branch: parseBranch(body.branch) }),
    ...(body.dockerfile_path !== undefined && {
      dockerfile_path: parsePath(body.dockerfile_path, 'dockerfile_path')
    }),
    ...(body.root_directory !== undefined && {
      root_directory: parsePath(body.root_directory, 'root_directory')
    }),
    ...(body.build_target !== undefined && { build_target: parseTarget(body.build_target) }),
    ...(body.build_platform !== undefined && { build_platform: parsePlatform(body.build_platform) }),
    ...(body.build_type_override !== undefined && {
      build_type_override: isGiven(body.build_type_override)
        ? requireBuildType(
            'build_type_override',
            body.build_type_override.trim(),
            buildTypes,
            current.build_type_override
          )
        : null
    }),
    ...(body.builder_image !== undefined && {
      builder_image: isGiven(body.builder_image) ? parseImage(body.builder_image, 'builder_image') : null
    }),
    ...(body.custom_buildpacks !== undefined && {
      custom_buildpacks: parseBuildpacks(body.custom_buildpacks)
    })
  }
}

/** What happens to the stored git token: kept, dropped, or replaced by a new one. */
export type TokenChange =
  | { readonly kind: 'keep' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'set'; readonly token: string }

/**
 * Empty keeps and null drops; but a stored token is never kept when the repository moves to another
 * host: a user who may write but not read secrets could have it sent to a host of their own.
 */
export function decideToken(
  current: { readonly source_repo: string | null; readonly has_git_credentials: boolean },
  repo: string | undefined,
  token: string | null | undefined
): TokenChange {
  if (token === null) return { kind: 'drop' }
  if (isGiven(token)) return { kind: 'set', token: token.trim() }
  if (current.has_git_credentials && repo !== undefined && current.source_repo !== null) {
    const from = addressOf(current.source_repo)
    const to = addressOf(repo)
    if (from !== to) throw problems.tokenNeeded({ from, to }, { field: 'git_token' })
  }
  return { kind: 'keep' }
}

/** What happens to the stored account of the registry. */
export type RegistryChange =
  | { readonly kind: 'keep' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'rename'; readonly username: string }
  | { readonly kind: 'set'; readonly username: string; readonly password: string }

/**
 * User name and password come and go together: null for either, or an empty user name, drops both. An
 * empty password keeps the stored one, but never for another registry than the one it was given for.
 */
export function decideRegistry(
  current: Pick<ApplicationRow, 'source_image' | 'registry_username' | 'has_registry_credentials'>,
  image: string | undefined,
  { registry_username: name, registry_password: password }: RegistryFields
): RegistryChange {
  const username = name?.trim()
  if (isSecret(password)) {
    const chosen = name === undefined ? current.registry_username : username
    if (!isGiven(chosen)) throw invalid('registry_username', 'is needed with registry_password')
    return { kind: 'set', username: chosen, password }
  }
  if (password === null || name === null || username === '') return { kind: 'drop' }
  if (!current.has_registry_credentials) {
    if (username !== undefined) throw invalid('registry_password', 'is needed with registry_username')
    return { kind: 'keep' }
  }
  requireSameRegistry(current.source_image ?? '', image)
  return username === undefined ? { kind: 'keep' } : { kind: 'rename', username }
}

// Blanks can be a password, an empty text cannot.
const isSecret = (text: string | null | undefined): text is string =>
  text !== undefined && text !== null && text !== ''

function requireSameRegistry(before: string, image: string | undefined): void {
  if (image === undefined) return
  const from = registryOf(before)
  const to = registryOf(image)
  if (from !== to) throw problems.credentialsNeeded({ from, to }, { field: 'registry_password' })
}
