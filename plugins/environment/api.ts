import { service } from 'busbar/sdk'

export interface Variable {
  readonly key: string
  readonly value: string
  readonly isSecret: boolean
}

export interface EnvironmentVariables {
  /** Project variables overridden by the application's, by key, values in clear. Throws when one cannot be decrypted. */
  merged(projectId: string, applicationId: string): Promise<readonly Variable[]>
}
export const environmentVariables = service<EnvironmentVariables>('environment.variables')
