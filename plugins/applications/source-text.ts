import { imageReferenceShape } from 'busbar/api/images'
import { parseSshRepository } from './api.js'
import { invalid, problems } from './problems.js'

/** A repository that git may clone: http(s), or ssh in either form. Throws a 400 naming `source_repo`. */
export function parseRepo(text: string | undefined): string {
  const repo = text?.trim() ?? ''
  if (repo === '') throw invalid('source_repo', 'is required for a git application')
  if (parseSshRepository(repo) !== undefined) return repo
  const url = httpUrl(repo)
  if (url === null)
    throw invalid(
      'source_repo',
      'must be an http(s) URL, or for ssh git@host:owner/repository.git or ssh://git@host:port/owner/repository.git, without a password and other characters than a path needs'
    )
  if (url.username !== '' || url.password !== '')
    throw invalid('source_repo', 'must not carry credentials; send them as git_token')
  if (url.search !== '' || url.hash !== '')
    throw invalid('source_repo', 'must end with the path of the repository, without ? or #')
  return repo
}

/** What a credential is sent to: protocol, host and port. */
export const addressOf = (repo: string): string => {
  const ssh = parseSshRepository(repo)
  return ssh === undefined
    ? (httpUrl(repo)?.origin ?? repo)
    : `ssh://${ssh.host}${ssh.port === 22 ? '' : `:${ssh.port}`}`
}

function httpUrl(text: string): URL | null {
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) return null
  return new URL(text)
}

/** An image reference: `nginx:1.27`, `registry:5000/team/app@sha256:…`. */
export function parseImage(text: string | undefined, field: string): string {
  const image = text?.trim() ?? ''
  if (image === '') throw invalid(field, 'is required for an image application')
  if (!imageReferenceShape.test(image))
    throw invalid(
      field,
      'must be an image reference in lower case, such as nginx:1.27 or registry.example.com/team/app:1'
    )
  return image
}

const branchForm = /^[\p{L}\p{N}_][\p{L}\p{N}._/+@#=,-]*$/u
const branchFaults = /\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|[./]$/

/** A branch git accepts and no command line can mistake; null for the repository's default. */
export function parseBranch(text: string | null | undefined, field = 'branch'): string | null {
  const branch = text?.trim() ?? ''
  if (branch === '') return null
  if (branch.length > 250 || !branchForm.test(branch) || branchFaults.test(branch))
    throw problems.invalidBranch({ field })
  return branch
}

/** A path inside the repository, relative, without dots that climb; null for its root or for the default. */
export function parsePath(text: string | null | undefined, field: string): string | null {
  const segments = (text?.trim() ?? '').split('/').filter(segment => segment !== '' && segment !== '.')
  if (segments.includes('..') || segments.some(segment => segment.includes('\\')))
    throw invalid(field, 'must lie inside the repository')
  return segments.length === 0 ? null : segments.join('/')
}

/** A JSON array of buildpack URIs, as text; empty text is an empty array. */
export function parseBuildpacks(text: string | null): string {
  if (text === null || text.trim() === '') return '[]'
  const uris = jsonOf(text)
  if (!Array.isArray(uris) || uris.length > 50 || !uris.every(isUri)) {
    throw invalid('custom_buildpacks', 'must be a JSON array of at most 50 buildpack URIs')
  }
  return JSON.stringify(uris)
}

const isUri = (value: unknown): value is string =>
  typeof value === 'string' && /^[^\s-]\S{0,500}$/.test(value)

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
