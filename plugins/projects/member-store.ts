import { userTable } from 'busbar/api/identity'
import type { Database, ProjectId, TableRow, Tx } from 'busbar/sdk'
import type { MemberRole, MemberRow } from './schemas.js'

type KnownUser = TableRow<typeof userTable, 'id' | 'email' | 'username'>

interface PutMember {
  readonly role: MemberRole
  readonly before: MemberRole | null
  readonly created_at: Date
}

export class MemberStore {
  constructor(private readonly db: Database) {}

  /** The owner first, then by e-mail address. */
  async list(projectId: ProjectId): Promise<MemberRow[]> {
    return await this.db.sql<MemberRow>(
      `
      select u.id as user_id, u.email, u.username, m.role, m.created_at from (
        select user_id, 'owner' as role, created_at from $schema.project where id = :projectId and deleting_at is null
        union all select user_id, role, created_at from $schema.member where project_id = :projectId
      ) m join ${userTable.name} u on u.id = m.user_id
      order by m.role <> 'owner', u.email`,
      { projectId }
    )
  }

  /** `email` as identity keeps it: in lower case. The user found is not deleted until `tx` ends. */
  async findUser(email: string, tx: Tx): Promise<KnownUser | undefined> {
    const [row] = await this.db.sql<KnownUser>(
      `select u.id, u.email, u.username from ${userTable.name} u where u.email = ? for key share`,
      [email],
      tx
    )
    return row
  }

  /** What the project is called and who owns it; undefined when there is none. Its members are locked until `tx` ends. */
  async hold(
    projectId: ProjectId,
    tx: Tx
  ): Promise<{ readonly name: string; readonly user_id: string } | undefined> {
    const [row] = await this.db.sql<{ name: string; user_id: string }>(
      'select name, user_id from $schema.project where id = ? and deleting_at is null for no key update',
      [projectId],
      tx
    )
    return row
  }

  /** The owner, and who was a member at that time; nobody when the project is gone or going. */
  async usersOf(projectId: string, at: Date, tx?: Tx): Promise<readonly string[]> {
    const rows = await this.db.sql<{ user_id: string }>(
      `
      select user_id from $schema.project where id = :projectId and deleting_at is null
      union select m.user_id from $schema.member m join $schema.project p on p.id = m.project_id
      where p.id = :projectId and p.deleting_at is null and m.created_at <= :at`,
      { projectId, at },
      tx
    )
    return rows.map(({ user_id: userId }) => userId)
  }

  /** How many members there are beside this one. */
  async countOthers(projectId: ProjectId, userId: string, tx: Tx): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      'select count(*) as total from $schema.member where project_id = ? and user_id <> ?',
      [projectId, userId],
      tx
    )
    return row?.total ?? 0
  }

  /** Adds, or changes the role; when they became a member stays. `before` is the role until now. */
  async put(
    member: { readonly projectId: ProjectId; readonly userId: string; readonly role: MemberRole },
    now: Date,
    tx: Tx
  ): Promise<PutMember | undefined> {
    const [row] = await this.db.sql<PutMember>(
      `
      with former as (select role from $schema.member where project_id = :projectId and user_id = :userId)
      insert into $schema.member (project_id, user_id, role, created_at) values (:projectId, :userId, :role, :now)
      on conflict (project_id, user_id) do update set role = excluded.role
      returning role, created_at, (select role from former) as before`,
      { ...member, now },
      tx
    )
    return row
  }

  async remove(projectId: ProjectId, userId: string, tx: Tx): Promise<void> {
    await this.db.sql(
      'delete from $schema.member where project_id = ? and user_id = ?',
      [projectId, userId],
      tx
    )
  }
}
