import { countedRows, type Database, type Page, type Role, type Rows, type Tx } from 'busbar/sdk'
import type { UserRow } from '../api.js'

/** A user's row with the hash of the password; it leaves this plugin only without it. */
export interface StoredUser extends UserRow {
  readonly password_hash: string
}
export interface NewUser {
  readonly id: string
  readonly email: string
  readonly username: string
  readonly role: Role
  readonly password_hash: string
  readonly first_name?: string
  readonly last_name?: string
}
interface UserChanges {
  readonly username?: string
  readonly first_name?: string
  readonly last_name?: string
  readonly role?: Role
  readonly password_hash?: string
}

const wireColumns = [
  'id',
  'email',
  'username',
  'first_name',
  'last_name',
  'role',
  'created_at',
  'last_active_at'
] as const
const storedColumns = [...wireColumns, 'password_hash'] as const

export class UserStore {
  constructor(private readonly db: Database) {}

  async isEmpty(tx?: Tx): Promise<boolean> {
    return (await this.#users(tx).first('id')) === undefined
  }

  /** Locks the adding of users until `tx` has ended. */
  async lockAll(tx: Tx): Promise<void> {
    await this.db.sql('lock table $schema.user in share row exclusive mode', [], tx)
  }

  async find(id: string, tx?: Tx): Promise<StoredUser | undefined> {
    return await this.#users(tx)
      .where({ id })
      .first(...storedColumns)
  }

  async findByEmail(email: string, tx?: Tx): Promise<StoredUser | undefined> {
    return await this.#users(tx)
      .where({ email })
      .first(...storedColumns)
  }

  /** The user, who is neither changed nor deleted until `tx` has ended. */
  async hold(id: string, tx: Tx): Promise<StoredUser | undefined> {
    return await this.#users(tx)
      .where({ id })
      .forShare()
      .first(...storedColumns)
  }

  /** The same for who is going to change it. */
  async lock(id: string, tx: Tx): Promise<StoredUser | undefined> {
    return await this.#users(tx)
      .where({ id })
      .forUpdate()
      .first(...storedColumns)
  }

  /** The ids of all admins, none of whom is demoted or deleted until `tx` has ended. */
  async holdAdmins(tx: Tx): Promise<readonly string[]> {
    const rows = await this.#users(tx).where({ role: 'admin' }).orderBy('id').forUpdate().select('id')
    return rows.map(row => row.id)
  }

  async adminIds(tx?: Tx): Promise<readonly string[]> {
    return (await this.#users(tx).where({ role: 'admin' }).select('id')).map(({ id }) => id)
  }

  /** Oldest first, with the count of all. */
  async list(page: Page): Promise<Rows<UserRow>> {
    const rows: readonly UserRow[] = await this.#users()
      .select(...wireColumns)
      .orderBy([{ column: 'created_at' }, { column: 'id' }])
      .limit(page.limit)
      .offset(page.offset)
    return await countedRows(page, rows, () => this.db.sql('select count(*) as total from $schema.user'))
  }

  /** Undefined when the address is taken. */
  async insert(user: NewUser, now: Date, tx?: Tx): Promise<UserRow | undefined> {
    const [row] = await this.#users(tx)
      .insert({
        first_name: '',
        last_name: '',
        ...user,
        created_at: now,
        updated_at: now,
        last_active_at: now
      })
      .onConflict('email')
      .ignore()
      .returning([...wireColumns])
    return row
  }

  async update(id: string, changes: UserChanges, now: Date, tx: Tx): Promise<UserRow | undefined> {
    const [row] = await this.#users(tx)
      .where({ id })
      .update({ ...changes, updated_at: now })
      .returning([...wireColumns])
    return row
  }

  async delete(id: string, tx: Tx): Promise<void> {
    await this.#users(tx).where({ id }).delete()
  }

  #users(tx?: Tx) {
    return this.db.table<StoredUser & { updated_at: Date }>('user', tx)
  }
}
