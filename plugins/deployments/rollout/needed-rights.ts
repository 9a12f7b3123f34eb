/**
 * Capabilities of Linux that images ask for when they start: those that Docker gives by default, and that `container_caps`
 * `minimal` takes away.
 */
type Right = 'CHOWN' | 'DAC_OVERRIDE' | 'FOWNER' | 'SETUID' | 'SETGID' | 'NET_RAW' | 'SYS_CHROOT'

const userAndFiles: readonly Right[] = ['CHOWN', 'DAC_OVERRIDE', 'SETUID', 'SETGID']
const user: readonly Right[] = ['SETUID', 'SETGID']

/** Official images that start as root, give their files to a user and go on as that one. */
const official: Readonly<Record<string, readonly Right[]>> = {
  redis: userAndFiles,
  valkey: userAndFiles,
  postgres: userAndFiles,
  mysql: userAndFiles,
  mariadb: userAndFiles,
  mongo: userAndFiles,
  rabbitmq: userAndFiles,
  cassandra: userAndFiles,
  couchdb: userAndFiles,
  influxdb: userAndFiles,
  ghost: userAndFiles,
  nginx: userAndFiles,
  httpd: user,
  wordpress: userAndFiles,
  nextcloud: userAndFiles,
  drupal: user,
  joomla: userAndFiles,
  matomo: userAndFiles,
  haproxy: user
}

/** By how programs and libraries say that they were refused it. Linear: no repetition within a line. */
const words: ReadonlyArray<readonly [said: RegExp, rights: readonly Right[]]> = [
  [/chown|changing ownership|lchown/i, ['CHOWN']],
  [/setgid|setgroups|setuid|setpriv|gosu|su-exec|set(?:res|re)?[ug]id|drop(?:ping)? privileges/i, user],
  [/chmod|changing permissions/i, ['FOWNER']],
  [/raw socket|ping:/i, ['NET_RAW']],
  [/chroot/i, ['SYS_CHROOT']]
]
const refused = /operation not permitted|permission denied|EPERM|EACCES|setgid|setuid|chown/i

/** What an image is known to need; empty for one that nothing is known of. */
export function rightsOfImage(reference: string): readonly Right[] {
  const name =
    /^(?:(?:index\.|registry-1\.)?docker\.io\/|public\.ecr\.aws\/docker\/)?(?:library\/)?([a-z0-9-]+)(?:[:@]|$)/.exec(
      reference
    )?.[1] ?? ''
  return Object.hasOwn(official, name) ? (official[name] ?? []) : []
}

/** What a program says it was refused; undefined when it was refused nothing, empty when it does not say what. */
export function rightsMissed(output: string): readonly Right[] | undefined {
  const lines = output.split('\n').filter(line => refused.test(line))
  if (lines.length === 0) return undefined
  const found = lines.flatMap(line => words.flatMap(([said, rights]) => (said.test(line) ? rights : [])))
  return [...new Set(found)]
}

/** `CHOWN, SETUID and SETGID`. */
export const listRights = (rights: readonly Right[]): string =>
  rights.length < 2 ? rights.join('') : `${rights.slice(0, -1).join(', ')} and ${rights.at(-1) ?? ''}`
