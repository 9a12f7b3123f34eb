import type { SignedInCaller } from 'busbar/sdk'

/** Who a request comes from. `missing`: nothing was shown; `invalid`: what was shown is not or no longer good. */
export type Authentication =
  | { readonly kind: 'caller'; readonly caller: SignedInCaller }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid' }

/** The two headers that can hold a credential. */
interface CredentialHeaders {
  readonly authorization: string | undefined
  readonly cookie: string | undefined
}

/** Known at once unless the credential must be looked up. Rejects when the look-up fails: that says nothing about the credential. */
export type Authenticate = (headers: CredentialHeaders) => Authentication | Promise<Authentication>
