import type { BuildContext, BuildRequest } from '../api.js'

/** How an application's variables reach a foreign program that builds it. */
export interface PassedVariables {
  /** Arguments: `--env NAME`, whose value the program takes from its environment, or `--env NAME=value`. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Names of those that it is not given, for the build log. */
  readonly withheld: readonly string[]
}

/**
 * Names that a program, its libraries or what it starts obey themselves. A user who may set an application's
 * variables must not be able to steer a process on the platform's machine by them.
 */
const reservedNames = [
  // the system, shells, and where files are
  'PATH|HOME|USER|LOGNAME|SHELL|ENV|IFS|PS4|PWD|OLDPWD|EDITOR|PAGER|TERM|TERMINFO|BASH_\\w+|BASHOPTS|SHELLOPTS|TMPDIR|TMP|TEMP|XDG_\\w+',
  'LANG|LANGUAGE|LC_\\w+|TZ|TZDIR|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|NLSPATH|LOCPATH|LD_\\w+|DYLD_\\w+|GLIBC_\\w+|MALLOC_\\w+',
  // connections, and what is trusted in them
  '(HTTPS?|FTP|ALL|NO)_PROXY|SSL_\\w+|OPENSSL_\\w+|CURL_\\w+|SSH_\\w+|GIT_(?!TOKEN$)\\w+|GNUPGHOME|GRPC_\\w+|OTEL_\\w+',
  'AWS_(CONFIG|SHARED|CA|EC2|CONTAINER|ENDPOINT)_?\\w*|AZURE_CONFIG_DIR|CLOUDSDK_\\w+|GOOGLE_(APPLICATION|EXTERNAL)_\\w+',
  // the builders and what they start
  '(DOCKER|BUILDKIT|BUILDX|MOBY|COMPOSE|CNB|PACK|MISE|ASDF|RTX|NIX|BUSBAR)_\\w+',
  // languages
  'GO[A-Z0-9]+|(RUST|CARGO|RUSTUP|BUN|PIP|PIPX|UV|NPM_CONFIG|YARN|PNPM|COREPACK)_\\w+|NODE_(?!ENV$|AUTH_TOKEN$)\\w+|PYTHON[A-Z]+|PERL5?\\w*|RUBY(OPT|LIB)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS'
]
const reserved = new RegExp(`^(${reservedNames.join('|')})$`, 'i')

/** Names under which a program takes its own settings from the variables it is given to build with. */
const settings = /^(RAILPACK|NIXPACKS|BP|BPL|BPE)_/

/**
 * Values go by the environment: other users of the machine can read arguments, and no list of arguments
 * takes a value apart at its commas. A name that would steer the program itself goes as an argument
 * unless it is secret.
 */
export function passVariables(
  variables: BuildRequest['variables'],
  { withSecrets }: { readonly withSecrets: boolean }
): PassedVariables {
  const args: string[] = []
  const env: Record<string, string> = {}
  const withheld: string[] = []
  for (const { key, value, isSecret } of variables) {
    const isReserved = reserved.test(key) && !settings.test(key)
    if ((isSecret && (!withSecrets || isReserved)) || (isReserved && value.includes(','))) {
      withheld.push(key)
    } else if (isReserved) {
      args.push('--env', `${key}=${value}`)
    } else {
      args.push('--env', key)
      env[key] = value
    }
  }
  return { args, env, withheld }
}

export function warnOfWithheld({ withheld }: PassedVariables, program: string, { log }: BuildContext): void {
  for (const name of withheld) {
    log({
      level: 'warning',
      msg: `${program} is not given ${name}: it is secret and would be written into the image or shown to other users of this machine, or it would steer ${program} itself`
    })
  }
}
