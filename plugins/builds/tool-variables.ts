import type { BuildContext, BuildRequest } from './api.js'

/** How an application's variables reach a foreign program that builds it. */
export interface PassedVariables {
  /** Arguments: `--env NAME`, whose value the program takes from its environment, or `--env NAME=value`. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Names of those that it is not given, for the build log. */
  readonly withheld: readonly string[]
}

/**
 * Names that a program, its libraries or what it starts obey themselves. Whoever may set an application's
 * variables must not be able to steer a process on the platform's machine by them.
 */
const reserved = /^(PATH|HOME|USER|LOGNAME|SHELL|ENV|IFS|LANG|LANGUAGE|TZ|TZDIR|TMPDIR|TMP|TEMP|PWD|OLDPWD|EDITOR|PAGER|TERM|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|CI|GITHUB_TOKEN|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|BASH_ENV|BASHOPTS|SHELLOPTS|PS4|(HTTPS?|FTP|ALL|NO)_PROXY|(LD|DYLD|LC|GLIBC|MALLOC|DOCKER|BUILDKIT|BUILDX|MOBY|COMPOSE|PACK|CNB|XDG|SSL|OPENSSL|CURL|SSH|GIT|GO|GRPC|OTEL|MISE|ASDF|RTX|NIX|RUST|CARGO|PYTHON|PIP|NODE|NPM|NPM_CONFIG|BUN|PERL5?|GPG|GNUPG|AWS|AZURE|GOOGLE|CLOUDSDK|BUSBAR)_?.*)$/i

/** Names under which a program takes its own settings from the variables it is given to build with. */
const settings = /^(RAILPACK|NIXPACKS|BP|BPL|BPE)_/

/**
 * Values go by the environment: other users of the machine can read arguments, and no list of arguments
 * takes a value apart at its commas. A name that would steer the program itself goes as an argument
 * unless it is secret.
 */
export function passVariables (variables: BuildRequest['variables'], { withSecrets }: { readonly withSecrets: boolean }): PassedVariables {
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

export function warnOfWithheld ({ withheld }: PassedVariables, program: string, { log }: BuildContext): void {
  for (const name of withheld) {
    log({ level: 'warning', msg: `${program} is not given ${name}: it is secret and would be written into the image or shown to other users of this machine, or it would steer ${program} itself` })
  }
}
