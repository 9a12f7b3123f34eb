import { type Problem, problemTable } from 'busbar/sdk'

/** With what a registry is asked: nothing, nothing for the base image of a build, or an account, and whose that is. */
export type AskedAs =
  | 'anonymous'
  | 'build'
  | { readonly username: string; readonly of: 'application' | 'project' | 'installation' }

/** What the message of a failed fetch names. */
interface Wanted {
  /** As it was written. */
  readonly image: string
  readonly registry: string
  readonly name: string
  /** A tag, or `sha256:…`. */
  readonly version: string
  readonly as: AskedAs
}

/** The names of these are what a failure may be; `RegistryFailure` has the reason. */
const problems = problemTable({
  noImage: [
    404,
    'E_IMAGE_NOT_FOUND',
    'image {image} does not exist in the registry {registry}: it has no {version} of {name}, or no such repository; check name and tag'
  ],
  noRepository: [
    404,
    'E_IMAGE_NOT_FOUND',
    'image {image} does not exist in the registry {registry}: there is no repository {name}; check the name'
  ],
  broken: [
    502,
    'E_IMAGE_BROKEN',
    'the registry {registry} has {image} incomplete or damaged: {reason}; push the image again'
  ],
  format: [
    409,
    'E_IMAGE_FORMAT',
    'image {image} has a format that the platform does not know: {reason}; build and push it anew with a current engine'
  ],
  packing: [409, 'E_IMAGE_FORMAT', 'image {image} cannot be unpacked by the platform: {reason}'],
  platform: [
    409,
    'E_IMAGE_PLATFORM',
    'image {image} does not exist for the kind of machine that it is wanted for: {reason}; push it for that one too, or name another image'
  ],
  size: [409, 'E_IMAGE_SIZE', 'image {image} is too large: {reason}; make it smaller, or name another one'],
  denied: [
    409,
    'E_REGISTRY_DENIED',
    'the registry {registry} does not hand out {image} to everybody: it needs credentials, or does not exist; check the name, and set registry_username and registry_password of the application to those of an account that may read it, or give its project an account of {registry} (PUT /api/projects/<id>/registries)'
  ],
  deniedBase: [
    409,
    'E_REGISTRY_DENIED',
    'the registry {registry} does not hand out the base image {image} to everybody, and neither the project nor the installation has an account of it: the image needs one, or does not exist; check the name, and give the project an account that may read it (PUT /api/projects/<id>/registries), or load the image into the engine'
  ],
  credentials: [
    409,
    'E_REGISTRY_CREDENTIALS',
    'the registry {registry} refused the user name {username} and its password{whose}: they are wrong or have expired; {renewal}'
  ],
  forbidden: [
    409,
    'E_REGISTRY_DENIED',
    'the registry {registry} does not hand out {image} to the account {username}{whose}: allow it to pull this image, or check the name'
  ],
  limit: [
    502,
    'E_REGISTRY_LIMIT',
    'the registry {registry} limits how often images are pulled: wait, or give the project an account with a higher limit (PUT /api/projects/<id>/registries)'
  ],
  unreachable: [
    502,
    'E_REGISTRY_UNREACHABLE',
    'the registry {registry} could not be reached to pull {image}: {reason}; check its host and port and the network of this machine, or load the image into the engine'
  ],
  silent: [
    502,
    'E_REGISTRY_UNREACHABLE',
    'the registry {registry} did not answer in time to pull {image}: {reason}; see whether it is well and its host and port are right, and whether a firewall is in between'
  ],
  slow: [
    502,
    'E_REGISTRY_SLOW',
    'the registry {registry} sends too slowly to pull {image}: {reason}; see whether it is well, check the connection of this machine to it, or load the image into the engine'
  ],
  unknown: [
    502,
    'E_REGISTRY_UNKNOWN',
    'the host name of the registry {registry} could not be resolved to pull {image}: {reason}; check its spelling and the DNS settings of this machine, or load the image into the engine'
  ],
  tls: [
    502,
    'E_REGISTRY_TLS',
    'the registry {registry} could not be trusted to pull {image}: {reason}; renew its certificate if it has expired or names another host; if its authority is your own, put the certificate of that into a file and name it by NODE_EXTRA_CA_CERTS in the environment of the platform'
  ],
  plainHttp: [
    502,
    'E_REGISTRY_PLAIN_HTTP',
    'the registry {registry} does not speak TLS, and {image} is not pulled by plain HTTP: give the registry a certificate, or, where the image needs no account, name the registry without its port in GIT_PRIVATE_HOSTS'
  ],
  answer: [
    502,
    'E_REGISTRY_ANSWER',
    'what answers at {registry} is no image registry, or not a working one: {reason}; check the host and port in {image}'
  ],
  failing: [
    502,
    'E_REGISTRY_FAILING',
    'the registry {registry} failed to hand out {image}: {reason}; try again later, or see its log'
  ],
  other: [502, 'E_IMAGE_PULL', 'image {image} could not be pulled: {reason}'],
  quiet: [
    502,
    'E_REGISTRY_FAILING',
    'the platform could not fetch {image}, or too slowly, although its registry {registry} answers: the log of the platform says why; to see the reason here, name the registry without its port in GIT_PRIVATE_HOSTS, or load the image into the engine'
  ]
})

/** `credentials`, `forbidden`: what it is without an account is told by `registryProblem`. */
export type FailureKind = Exclude<keyof typeof problems, 'denied' | 'deniedBase' | 'quiet'>

/** Why something does not come from a registry. The reason may hold words of the registry's. */
export class RegistryFailure extends Error {
  constructor(
    readonly kind: FailureKind,
    reason: string
  ) {
    super(reason.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, 400))
  }
}

/** The same as a problem with a remedy. */
export function registryProblem({ kind, message: reason }: RegistryFailure, wanted: Wanted): Problem {
  const { as, image, registry, name } = wanted
  const version = `${wanted.version.startsWith('sha256:') ? 'version' : 'tag'} ${wanted.version}`
  const account = typeof as === 'object' ? as : undefined
  const { username = '', of = 'application' } = account ?? {}
  const isRefusal = kind === 'credentials' || kind === 'forbidden'
  const told = !isRefusal || account !== undefined ? kind : as === 'build' ? 'deniedBase' : 'denied'
  return problems[told]({ image, registry, name, version, username, reason, ...owners[of] })
}

/** How an account is spoken of, by whose it is, and who can set it anew. */
const owners = {
  application: {
    whose: '',
    renewal: 'set registry_username and registry_password of the application anew'
  },
  project: {
    whose: ', the account of the project',
    renewal: 'set that account anew (PUT /api/projects/<id>/registries)'
  },
  installation: {
    whose: ', the account of the installation',
    renewal:
      'an admin has to set that account anew (PUT /api/registries), or give the project one of its own (PUT /api/projects/<id>/registries)'
  }
} as const

/** By these, and by the words of them, a closed port, a silent one, a web page and a banner could be told apart. */
const tellingKinds: ReadonlySet<FailureKind> = new Set([
  'unreachable',
  'silent',
  'slow',
  'unknown',
  'tls',
  'plainHttp',
  'answer',
  'failing',
  'broken',
  'format',
  'other'
])

/** For hosts that a registry has led to, unless the operator has allowlisted it: undefined where the failure may be shown. */
export const quietProblem = (
  { kind }: RegistryFailure,
  { image, registry }: Pick<Wanted, 'image' | 'registry'>
): Problem | undefined => (tellingKinds.has(kind) ? problems.quiet({ image, registry }) : undefined)
