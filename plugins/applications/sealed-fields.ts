import { randomBytes } from 'node:crypto'
import type { Secrets } from 'busbar/sdk'

type Column = 'git_token' | 'webhook_secret' | 'registry_password'

/** The secrets of an application, each bound to its column and row. */
export class SealedFields {
  constructor(private readonly secrets: Secrets) {}

  seal(column: Column, applicationId: string, plaintext: string): string {
    return this.secrets.seal(plaintext, { table: 'application', column, row: applicationId })
  }

  open(column: Column, applicationId: string, sealed: string): string {
    return this.secrets.open(sealed, { table: 'application', column, row: applicationId })
  }

  /** A new push secret: 32 random bytes in hex. */
  newWebhookSecret(applicationId: string): string {
    return this.seal('webhook_secret', applicationId, randomBytes(32).toString('hex'))
  }
}
