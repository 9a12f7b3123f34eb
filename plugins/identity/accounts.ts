import type { Clock, Credentials, Database, Events, Secrets } from 'busbar/sdk'
import type { Identity } from './api.js'
import { InstanceStore } from './instance-store.js'
import { LockOut } from './passwords/lock-out.js'
import { LockOutStore } from './passwords/lock-out-store.js'
import { PasswordHasher } from './passwords/password-hasher.js'
import { PasswordResetService } from './passwords/password-reset-service.js'
import { PasswordResetStore } from './passwords/password-reset-store.js'
import { PasswordService } from './passwords/password-service.js'
import { PasswordWriter } from './passwords/password-writer.js'
import { Reauthentication } from './passwords/reauthentication.js'
import type { SessionPolicy } from './policy.js'
import { KnownDevices } from './sessions/known-devices.js'
import { LoginChallenges } from './sessions/login-challenges.js'
import { NewSignIns } from './sessions/new-sign-ins.js'
import { SessionIssuer } from './sessions/session-issuer.js'
import { SessionService } from './sessions/session-service.js'
import { SessionStore } from './sessions/session-store.js'
import { TokenService } from './tokens/token-service.js'
import { TokenStore } from './tokens/token-store.js'
import { TokenUseStore } from './tokens/token-use-store.js'
import { SecondFactor } from './two-factor/second-factor.js'
import { TwoFactorService } from './two-factor/two-factor-service.js'
import { TwoFactorStore } from './two-factor/two-factor-store.js'
import { AlertPreferenceStore } from './users/alert-preference-store.js'
import { AlertSettingService } from './users/alert-setting-service.js'
import { InvitationService } from './users/invitation-service.js'
import { InvitationStore } from './users/invitation-store.js'
import type { SetupAccess } from './users/setup-access.js'
import { UserService } from './users/user-service.js'
import { UserStore } from './users/user-store.js'

interface AccountsParts {
  readonly db: Database
  readonly events: Events
  readonly secrets: Secrets
  readonly clock: Clock
  readonly credentials: Credentials
  readonly policy: SessionPolicy
  readonly setup: SetupAccess
  readonly hasher?: PasswordHasher
}

/** Puts the services over one schema together, and shows them as the one that other plugins know. */
export function accountsOf({
  db,
  events,
  secrets,
  clock,
  credentials,
  policy,
  setup,
  hasher = new PasswordHasher()
}: AccountsParts): Identity {
  const lockOut = new LockOut(new LockOutStore(db), clock)

  const store = {
    users: new UserStore(db),
    sessions: new SessionStore(db),
    tokens: new TokenStore(db),
    twoFactor: new TwoFactorStore(db),
    resets: new PasswordResetStore(db),
    invitations: new InvitationStore(db)
  }

  const issuer = new SessionIssuer({ store: store.sessions, credentials, policy, clock })
  const writer = new PasswordWriter({ ...store, issuer, clock })
  const secondFactor = new SecondFactor(store.twoFactor, secrets, clock)
  const devices = new KnownDevices(secrets, clock)
  /** What most of them need. */
  const common = { db, events, users: store.users, hasher, lockOut, issuer, devices, credentials, clock }
  const newSignIns = new NewSignIns({ events, devices, sessions: store.sessions })
  const reauthentication = new Reauthentication({ ...common, secondFactor })
  const challenges = new LoginChallenges({ ...common, store: store.twoFactor, secondFactor, newSignIns })

  return offered({
    users: new UserService({
      ...common,
      store: store.users,
      instance: new InstanceStore(db),
      setup,
      invitations: store.invitations
    }),
    sessions: new SessionService({ ...common, store: store.sessions, challenges, newSignIns }),
    passwords: new PasswordService({ ...common, writer, reauthentication }),
    resets: new PasswordResetService({ ...common, store: store.resets, writer }),
    invitations: new InvitationService({ ...common, store: store.invitations }),
    alerts: new AlertSettingService(new AlertPreferenceStore(db)),
    tokens: new TokenService({ ...common, store: store.tokens, uses: new TokenUseStore(db) }),
    twoFactor: new TwoFactorService({ ...common, store: store.twoFactor, secondFactor, reauthentication })
  })
}

interface AccountServices {
  readonly users: UserService
  readonly sessions: SessionService
  readonly passwords: PasswordService
  readonly resets: PasswordResetService
  readonly invitations: InvitationService
  readonly alerts: AlertSettingService
  readonly tokens: TokenService
  readonly twoFactor: TwoFactorService
}

/** The contract, by the service that keeps each part of it. */
const offered = ({
  users,
  sessions,
  passwords,
  resets,
  invitations,
  alerts,
  tokens,
  twoFactor
}: AccountServices): Identity => ({
  isSetupRequired: () => users.isSetupRequired(),
  isSetupCodeRequired: () => users.isSetupCodeRequired(),
  checkSetupRequest: headers => users.checkSetupRequest(headers),
  checkSetupCode: code => users.checkSetupCode(code),
  setUp: input => users.setUp(input),
  instanceName: () => users.instanceName(),
  findUser: userId => users.findUser(userId),
  adminIds: tx => users.adminIds(tx),
  listUsers: page => users.listUsers(page),
  createUser: input => users.createUser(input),
  updateProfile: (userId, changes) => users.updateProfile(userId, changes),
  changeRole: (userId, role) => users.changeRole(userId, role),
  deleteUser: (userId, actingUserId) => users.deleteUser(userId, actingUserId),

  login: (input, client) => sessions.login(input, client),
  verifyLogin: (input, client) => sessions.verifyLogin(input, client),
  refresh: headers => sessions.refresh(headers),
  listSessions: userId => sessions.listSessions(userId),
  endSession: (userId, sessionId) => sessions.endSession(userId, sessionId),
  signedOutCookies: () => sessions.signedOutCookies(),

  changePassword: (caller, input, client) => passwords.changePassword(caller, input, client),
  resetPassword: (caller, userId, input, client) => passwords.resetPassword(caller, userId, input, client),

  openPasswordReset: (email, tx) => resets.openPasswordReset(email, tx),
  completePasswordReset: input => resets.completePasswordReset(input),

  invite: (caller, input, tx) => invitations.invite(caller, input, tx),
  listInvitations: page => invitations.listInvitations(page),
  revokeInvitation: invitationId => invitations.revokeInvitation(invitationId),
  findInvitation: secret => invitations.findInvitation(secret),
  acceptInvitation: (input, client) => invitations.acceptInvitation(input, client),

  alertPreferences: userId => alerts.alertPreferences(userId),
  updateAlertPreferences: (userId, changes) => alerts.updateAlertPreferences(userId, changes),
  wanting: (preference, userIds, tx) => alerts.wanting(preference, userIds, tx),

  listTokens: (userId, page) => tokens.listTokens(userId, page),
  createToken: (caller, token) => tokens.createToken(caller, token),
  inspectToken: (userId, tokenId) => tokens.inspectToken(userId, tokenId),
  deleteToken: (userId, tokenId) => tokens.deleteToken(userId, tokenId),
  removePins: (projectId, tx) => tokens.removePins(projectId, tx),

  totpStatus: userId => twoFactor.totpStatus(userId),
  enrollTotp: (caller, password, client) => twoFactor.enrollTotp(caller, password, client),
  verifyTotp: (caller, code, client) => twoFactor.verifyTotp(caller, code, client),
  disableTotp: (caller, proof, client) => twoFactor.disableTotp(caller, proof, client),
  regenerateRecoveryCodes: (caller, proof, client) =>
    twoFactor.regenerateRecoveryCodes(caller, proof, client),
  resetTotp: (caller, userId, proof, client) => twoFactor.resetTotp(caller, userId, proof, client)
})
