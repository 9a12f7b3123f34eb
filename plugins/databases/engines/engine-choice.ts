import type { Contributions } from 'busbar/sdk'
import type { DatabaseEngine, DatabaseEngineKind } from '../api.js'
import { problems } from '../problems.js'

/** The engines that there are now. */
export class EngineChoice {
  readonly #loaded = new Map<DatabaseEngineKind, Promise<DatabaseEngine>>()

  constructor(private readonly kinds: Contributions<DatabaseEngineKind>) {}

  /** Of a type that somebody asks for. */
  wanted(type: string): DatabaseEngineKind {
    const kind = this.kinds.get(type)
    if (kind === undefined)
      throw problems.unknownType({ type, available: this.kinds.keys().sort().join(', ') || 'none' })
    return kind
  }

  /** Of a database that exists. */
  kindOf(type: string): DatabaseEngineKind {
    const kind = this.kinds.get(type)
    if (kind === undefined) throw problems.engineOff({ type })
    return kind
  }

  async of(type: string): Promise<DatabaseEngine> {
    const kind = this.kindOf(type)
    const known = this.#loaded.get(kind)
    if (known !== undefined) return await known
    const loading = kind.load()
    this.#loaded.set(kind, loading)
    loading.catch(() => this.#loaded.delete(kind))
    return await loading
  }
}
