import type { Database, Role, Tx } from 'busbar/sdk'
import type { ListRange, UserRow } from '../api.js'

/** A user's row with the hash of the password; it leaves this plugin only without it. */
export interface StoredUser extends UserRow { readonly password_hash: string }
export interface NewUser {
  readonly id: string
  readonly email: string
  readonly username: string
  readonly role: Role
  readonly password_hash: string
  readonly first_name?: string
  readonly last_name?: string
}
export interface UserChanges {
  readonly username?: string
  readonly first_name?: string
  readonly last_name?: string
  readonly role?: Role
  readonly password_hash?: string
}

export interface UserStore {
  isEmpty(tx?: Tx): Promise<boolean>
  /** Nobody adds a user until `tx` has ended. */
  lockAll(tx: Tx): Promise<void>
  find(id: string, tx?: Tx): Promise<StoredUser | undefined>
  findByEmail(email: string, tx?: Tx): Promise<StoredUser | undefined>
  /** The user, who is neither changed nor deleted until `tx` has ended. */
  hold(id: string, tx: Tx): Promise<StoredUser | undefined>
  /** The same for who is going to change it. */
  lock(id: string, tx: Tx): Promise<StoredUser | undefined>
  /** The ids of all admins, none of whom is demoted or deleted until `tx` has ended. */
  holdAdmins(tx: Tx): Promise<readonly string[]>
  list(range: ListRange): Promise<readonly UserRow[]>
  count(): Promise<number>
  /** Undefined when the address is taken. */
  insert(user: NewUser, now: Date, tx?: Tx): Promise<UserRow | undefined>
  update(id: string, changes: UserChanges, now: Date, tx: Tx): Promise<UserRow | undefined>
  delete(id: string, tx: Tx): Promise<void>
}

const wireColumns = ['id', 'email', 'username', 'first_name', 'last_name', 'role', 'created_at', 'last_active_at'] as const
const storedColumns = [...wireColumns, 'password_hash'] as const

export function createUserStore (database: Database): UserStore {
  const users = (tx?: Tx) => database.table<StoredUser & { updated_at: Date }>('user', tx)

  return Object.freeze<UserStore>({
    async isEmpty (tx) {
      return await users(tx).first('id') === undefined
    },
    async lockAll (tx) {
      await database.sql('lock table $schema.user in share row exclusive mode', [], tx)
    },
    find: async (id, tx) => await users(tx).where({ id }).first(...storedColumns),
    findByEmail: async (email, tx) => await users(tx).where({ email }).first(...storedColumns),
    hold: async (id, tx) => await users(tx).where({ id }).forShare().first(...storedColumns),
    lock: async (id, tx) => await users(tx).where({ id }).forUpdate().first(...storedColumns),
    async holdAdmins (tx) {
      const rows = await users(tx).where({ role: 'admin' }).orderBy('id').forUpdate().select('id')
      return rows.map(row => row.id)
    },
    list: async ({ limit, offset }) =>
      await users().select(...wireColumns).orderBy([{ column: 'created_at' }, { column: 'id' }]).limit(limit).offset(offset),
    async count () {
      const [row] = await database.sql<{ total: number }>('select cast(count(*) as int) as total from $schema.user')
      return row?.total ?? 0
    },
    async insert (user, now, tx) {
      const [row] = await users(tx)
        .insert({ first_name: '', last_name: '', ...user, created_at: now, updated_at: now, last_active_at: now })
        .onConflict('email').ignore().returning([...wireColumns])
      return row
    },
    async update (id, changes, now, tx) {
      const [row] = await users(tx).where({ id }).update({ ...changes, updated_at: now }).returning([...wireColumns])
      return row
    },
    async delete (id, tx) {
      await users(tx).where({ id }).delete()
    }
  })
}
