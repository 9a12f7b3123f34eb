interface UrlParts {
  readonly user?: string
  readonly password?: string
  readonly host: string
  readonly port: number
  readonly database?: string
}

/** What user, password and database hold is escaped: a password with `@` in it is no host. */
export function connectionUrl(
  scheme: string,
  { user = '', password = '', host, port, database }: UrlParts
): string {
  const path = database === undefined ? '' : `/${escaped(database)}`
  return `${scheme}://${escaped(user)}:${escaped(password)}@${host}:${port}${path}`
}

/** As `encodeURIComponent`, with what that leaves and some readers of URLs do not. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  )
