/**
 * Who may use a route or a channel, declared as a value.
 *
 * Every route and every channel carries exactly one `Access`. The kernel reads it when the plugin is
 * recorded, keeps a frozen copy, and decides from that copy alone: nothing a handler does later can
 * change it. OpenAPI security, CSRF, rate-limit bucket and the generated access matrix come from it too.
 */

/** The scope ladder, narrowest first: each scope includes those before it. */
export const scopes = ['metrics', 'read', 'deploy', 'write'] as const
export type Scope = (typeof scopes)[number]

export const roles = ['member', 'admin'] as const
export type Role = (typeof roles)[number]

/**
 * What a user may do in one project, narrowest first: a viewer reads and is shown no secret, an editor
 * works in it, its owner (and every admin) does everything.
 */
export const projectRoles = ['viewer', 'editor', 'owner'] as const
export type ProjectRole = (typeof projectRoles)[number]

/**
 * How the project that a request concerns is found. `P` is the union of the path parameters.
 *
 * - `{ param }`: a path parameter holds the project id. `chain` names the kind of every further id in
 *   the path; the kernel refuses (404) an id that does not belong to the ids before it.
 * - `{ of, param }`: a path parameter holds the id of a resource of kind `of`, or of one of several kinds; its project is
 *   looked up by what its plugin declares in `resources`. Of a kind that no plugin declares there is none.
 * - `'filtered'`: a list; the handler narrows its rows by `request.reach`.
 * - `'never-pinned'`: no project, and a pinned token is refused (403) whatever its pins are.
 * - `'none'`: no project is concerned and pins play no part.
 *
 * `owner: true` leaves the operation to the project's owner and to admins, even when it is shared; `self`
 * names a path parameter with the id of a user, who may do it too: leaving a project. Without them the
 * role in the project follows from the rest of the access; see `projectRoleFor`.
 */
export type ProjectRule<P extends string = string> =
  | {
      readonly param: P
      readonly chain?: { readonly [K in P]?: string }
      readonly owner?: true
      readonly self?: P
    }
  | { readonly of: string | readonly string[]; readonly param: P; readonly owner?: true }
  | 'filtered'
  | 'never-pinned'
  | 'none'

export interface PublicAccess {
  readonly kind: 'public'
  readonly reason: string
}
export interface SessionAccess<P extends string = string> {
  readonly kind: 'session'
  readonly role?: 'admin'
  readonly project: ProjectRule<P>
  readonly whileEnrolling?: true
}
export interface TokenAccess<P extends string = string> {
  readonly kind: 'token'
  readonly scope: Scope
  readonly role?: 'admin'
  readonly project: ProjectRule<P>
  readonly whileEnrolling?: true
}
export type Access<P extends string = string> = PublicAccess | SessionAccess<P> | TokenAccess<P>

interface AccessOptions {
  readonly role?: 'admin'
  readonly project: ProjectRule<string>
  /** Open to a session whose user still has to set up the second factor that the platform asks for. */
  readonly whileEnrolling?: true
}

/**
 * The three ways to grant access.
 *
 * - `allow.public(reason)`: no credential is looked at; the reason is shown in reviews and in the docs.
 * - `allow.session(options)`: a dashboard session only; a token gets 403 whatever its scope.
 * - `allow.token(scope, options)`: a token of that scope or a wider one, or a session.
 */
export const allow = {
  public: (reason: string) => ({ kind: 'public' as const, reason }),
  session: <const O extends AccessOptions>(options: O) => ({ kind: 'session' as const, ...options }),
  token: <const S extends Scope, const O extends AccessOptions>(scope: S, options: O) => ({
    kind: 'token' as const,
    scope,
    ...options
  })
}

/**
 * The narrowest role in a project that an operation there demands. Viewers may do what a token of the scope
 * `read` may; what takes a wider scope, or a session (reveals), is for editors. A session-only operation that
 * concerns no project may name one, as the pins of a token do.
 */
export function projectRoleFor(access: Access): ProjectRole {
  if (access.kind === 'public') return 'viewer'
  const { project } = access
  if (typeof project !== 'string' && project.owner === true) return 'owner'
  if (access.kind === 'session') return project === 'none' ? 'viewer' : 'editor'
  return access.scope === 'read' || access.scope === 'metrics' ? 'viewer' : 'editor'
}
