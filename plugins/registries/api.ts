import { extensionPoint, service } from 'busbar/sdk'

/** An account of a registry, in clear. */
export interface RegistryAccount {
  readonly username: string
  /** Or a token. It goes to the registry that it is for, and to no build. */
  readonly password: string
  /** Whose it is: what helps when it is refused differs. */
  readonly of: 'project' | 'installation'
}

export interface RegistryAccounts {
  /**
   * The account with which a project pulls `image` where that is not handed out to everybody: the project's own for its
   * registry, else the installation's, else undefined. What comes by it is for who could use it: it is no
   * image that everybody was handed. Rejects with 500 E_REGISTRY_ACCOUNT_UNREADABLE when the password cannot be decrypted.
   */
  find(projectId: string, image: string): Promise<RegistryAccount | undefined>
}
export const registryAccounts = service<RegistryAccounts>('registries.accounts')

/** What came of trying an account. */
export interface TrialVerdict {
  /**
   * `ok`: the registry let the account in, or asks for none. `refused`: it says that user name or password are wrong.
   * `unreachable`: that is not known, because it did not answer, is no registry, must not be asked, or nobody is there to ask it.
   */
  readonly status: 'ok' | 'refused' | 'unreachable'
  /** What to know about it, with the remedy; null where there is nothing. Without the password. */
  readonly reason: string | null
}

/** Who pulls images tries accounts by the same rules: which hosts may be asked, and where credentials may go. */
export interface RegistryTrial {
  /** `registry` as `registryOf` of busbar/api/images writes it. Must end within 20 seconds of its own. */
  try(
    registry: string,
    account: Pick<RegistryAccount, 'username' | 'password'>,
    signal: AbortSignal
  ): Promise<TrialVerdict>
}
export const registryTrials = extensionPoint<RegistryTrial>('registries.trials')
