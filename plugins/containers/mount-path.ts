/** What is mounted at a path of a container: a folder of a volume, or one file. */
export interface Mounted {
  readonly kind: 'volume' | 'file'
  readonly path: string
}

const mostCharacters = 500
/** Of one name between slashes, on every usual file system. */
const mostOfName = 255

/** What a container is nothing without. Below them, folders of its own may be mounted. */
const whole = ['/', '/proc', '/sys', '/dev', '/tmp', '/run', '/etc', '/boot', '/bin', '/sbin', '/lib', '/usr']
/** What the kernel shows there is of the machine. */
const closed = ['/proc', '/sys', '/dev']
/** What an engine puts into every container itself. */
const ofEngine = ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf', '/sbin/docker-init', '/.dockerenv']

/** Why nothing of this kind may be mounted at a path, as the end of a sentence that begins with it; undefined where it may. */
export function mountPathFault({ path, kind }: Mounted): string | undefined {
  if (path.length > mostCharacters) return `has more than ${mostCharacters} characters`
  if (!path.startsWith('/')) return 'must be absolute: it begins with /'
  if (!/^[A-Za-z0-9_./-]*$/.test(path)) return 'may hold letters, digits, and _ . / - only'
  if (whole.includes(path)) return `must not be ${path}, without which no container works`
  const names = path.slice(1).split('/')
  if (names.some(name => name === '' || name === '.' || name === '..'))
    return 'must be written plainly: without . and .. , double slashes and a slash at its end'
  if (names.some(name => name.length > mostOfName)) return `has a name of more than ${mostOfName} characters`
  if (closed.some(folder => path.startsWith(`${folder}/`)))
    return 'must not lie in /proc, /sys or /dev, which are of the machine'
  if (ofEngine.includes(path)) return `must not be ${path}, which the container engine puts there itself`
  if (kind === 'file' && names.length < 2)
    return 'must lie in a folder, as /app/settings.json does: / itself takes no files'
  return undefined
}

/**
 * Whether two things cannot be mounted in one container: at one path, or one below a file. A file in a volume can, and a
 * volume in another one.
 */
export const mountsCollide = (one: Mounted, other: Mounted): boolean =>
  one.path === other.path || isBelowFile(one, other) || isBelowFile(other, one)

const isBelowFile = (inner: Mounted, { kind, path }: Mounted): boolean =>
  kind === 'file' && inner.path.startsWith(`${path}/`)
