/** Which operations take `Idempotency-Key`: each POST that makes or starts something, and no other operation. */
import { join } from 'node:path'
import { test } from 'tap'
import { builtInRoutes } from '../../scripts/client/describe.js'

/** Why each other POST does not, by its operationId. */
const without: Readonly<Record<string, string>> = {
  // Nothing is made or started.
  CancelDeployment: 'ends something',
  StopApplication: 'ends something',
  StopDatabase: 'ends something',
  DisablePlugin: 'ends something',
  PurgePlugin: 'removes something',
  Logout: 'ends the session',
  ChangeApplicationSource: 'sets what there is',
  AdminResetUserTOTP: 'takes something away',
  DisableTOTP: 'takes something away',
  RevealDeployHook: 'reads something',
  TestProjectRegistryAccount: 'asks something',
  TestRegistryAccount: 'asks something',
  TestBackupDestination: 'asks something',
  TestBackupDestinationParams: 'asks something',
  TestBackupRemote: 'asks something',
  TestBackupRemoteParams: 'asks something',
  MarkNotificationRead: 'sets what there is',
  MarkAllNotificationsRead: 'sets what there is',
  // Who asks is nobody yet: an address is no caller whose answers, sessions among them, could be kept.
  Setup: 'works once',
  Login: 'gives a session',
  LoginVerify: 'gives a session',
  Refresh: 'gives a session',
  ForgotPassword: 'says nothing of what it does',
  ResetPassword: 'works once',
  AcceptInvitation: 'works once',
  // Each answer takes the place of the former, and its secrets are kept nowhere, which they would be for a day.
  EnrollTOTP: 'secrets that are kept nowhere',
  VerifyTOTPEnrollment: 'secrets that are kept nowhere',
  RegenerateRecoveryCodes: 'secrets that are kept nowhere',
  CreateRecoveryKey: 'secrets that are kept nowhere'
}

test('each POST that makes or starts something takes an Idempotency-Key, and nothing else does', async t => {
  const routes = await builtInRoutes(join(import.meta.dirname, '../..'))
  const named = new Map(routes.map(route => [route.operationId, route]))
  const taking = routes.filter(({ idempotent }) => idempotent)
  t.ok(taking.length > 10)
  t.same(
    taking.filter(({ method }) => method !== 'POST').map(({ operationId }) => operationId),
    [],
    'other methods repeat themselves'
  )
  t.same(
    routes
      .filter(
        ({ method, idempotent, operationId }) =>
          method === 'POST' && !idempotent && !((operationId ?? '') in without)
      )
      .map(({ operationId }) => operationId),
    [],
    'without a reason'
  )
  t.same(
    Object.keys(without).filter(name => named.get(name)?.idempotent !== false),
    [],
    'reasons of what takes one, or is not there'
  )
})
